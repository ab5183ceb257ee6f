// What a stored procedure or trigger finds: getContext(), __, console, ErrorCodes.
//
// The functions here check arguments and shape values. What touches the container goes through
// `native`, which is implemented in Rust:
//
//   queue(operation, hasCallback) true: queued; false: not accepted; an object: refused, with a number
//   loadQueries()                 the query API, queries.js
//   evaluate(expression, values)  a SQL scalar expression; parameters are @0, @1 …
//   translate(source, captures, parametersBefore)
//                                 a predicate as SQL, or undefined if it has to be called
//   translatePath(source)         likewise for a function that returns a property
//   fits(value)                   whether a response body is short enough
//   log(text)                     whether there was room
//   halt(error)                   ends the script
//
// The queue itself is kept twice, in step: operations there, callbacks here.

const { create, defineProperty, freeze } = Object;
const { isArray } = Array;
const { floor } = Math;
const { apply } = Reflect;
const TheError = globalThis.Error;
const TheString = globalThis.String;
const stringify = JSON.stringify;
const split = String.prototype.split;
const toLowerCase = String.prototype.toLowerCase;

const ErrorCodes = freeze({
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  PreconditionFailed: 412,
  RequestEntityTooLarge: 413,
  RetryWith: 449,
  InternalServerError: 500,
});

const PAGE_SIZE = 100;

function fail(number, message) {
  return new TheError(number, message);
}

function hidden(target, name, value) {
  defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}

// ---- arguments ---------------------------------------------------------------------------------

// The last two arguments of every call: options may be left out, and the callback put in their place.
function tail(name, options, callback) {
  if (typeof options === 'function' && callback === undefined) {
    callback = options;
    options = undefined;
  }
  if (options === undefined || options === null) {
    options = {};
  } else if (typeof options !== 'object') {
    throw fail(400, `Invalid options for ${name}: an object is expected.`);
  }
  if (callback === null) {
    callback = undefined;
  } else if (callback !== undefined && typeof callback !== 'function') {
    throw fail(400, `Invalid callback for ${name}: a function is expected.`);
  }
  return { options, callback };
}

function atLeast(name, given, expected) {
  if (given < expected) {
    throw fail(400, `Invalid number of arguments for ${name}: expected at least ${expected}, got ${given}.`);
  }
}

function text(options, name) {
  const value = options[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw fail(400, `Invalid option ${name}: a string is expected.`);
  return value;
}

function pageSize(options) {
  const value = options.pageSize;
  if (value === undefined || value === null || value === -1) return PAGE_SIZE;
  if (typeof value !== 'number' || !(value >= 1) || floor(value) !== value) {
    throw fail(400, 'Invalid option pageSize: a positive integer is expected.');
  }
  return value;
}

function isIndexed(options) {
  const value = options.indexAction;
  if (value === undefined || value === null) return undefined;
  const action = typeof value === 'string' ? apply(toLowerCase, value, []) : value;
  if (action === 'default') return undefined;
  if (action === 'include') return true;
  if (action === 'exclude') return false;
  throw fail(400, 'Invalid option indexAction: default, include or exclude is expected.');
}

function itemBody(name, body) {
  if (!(isObject(body) && !isArray(body)) && typeof body !== 'string') {
    throw fail(400, `Invalid body for ${name}: an object or a JSON string is expected.`);
  }
  return body;
}

function queryOf(query) {
  if (typeof query === 'string') return { text: query, parameters: [] };
  if (!isObject(query) || typeof query.query !== 'string') {
    throw fail(400, 'Invalid query: a string or an object with query and parameters is expected.');
  }
  const parameters = query.parameters === undefined || query.parameters === null ? [] : query.parameters;
  if (!isArray(parameters)) throw fail(400, 'Invalid query: parameters must be an array.');
  for (let i = 0; i < parameters.length; i++) {
    const parameter = parameters[i];
    if (!isObject(parameter) || typeof parameter.name !== 'string') {
      throw fail(400, 'Invalid query: each parameter needs a name and a value.');
    }
  }
  return { text: query.query, parameters };
}

// ---- links -------------------------------------------------------------------------------------

// Parts of a link; one slash at the end is allowed.
function segments(link) {
  const parts = apply(split, link, ['/']);
  if (parts.length > 1 && parts[parts.length - 1] === '') parts.length -= 1;
  return parts;
}

function isWord(part, word) {
  return apply(toLowerCase, part, []) === word;
}

function checkCollectionLink(link, collection) {
  if (typeof link !== 'string') throw fail(400, 'Invalid collection link: a string is expected.');
  const parts = segments(link);
  const isSound = parts.length === 4 && isWord(parts[0], 'dbs') && isWord(parts[2], 'colls');
  if (!isSound) throw fail(400, `Invalid collection link: ${link}`);
  if (!sameOwner(parts, collection.self) && !sameOwner(parts, collection.alt)) {
    throw fail(400, `Collection link is outside current collection: ${link}`);
  }
}

// Whether two links name the same database and collection, character for character.
function sameOwner(parts, owner) {
  return parts[1] === owner[1] && parts[3] === owner[3];
}

function itemLink(link, collection) {
  if (typeof link !== 'string') throw fail(400, 'Invalid document link: a string is expected.');
  const parts = segments(link);
  const isSound = parts.length === 6 && isWord(parts[0], 'dbs') && isWord(parts[2], 'colls')
    && isWord(parts[4], 'docs') && parts[5] !== '';
  if (!isSound) throw fail(400, `Invalid document link: ${link}`);
  if (sameOwner(parts, collection.self)) return { rid: parts[5] };
  if (sameOwner(parts, collection.alt)) return { id: parts[5] };
  throw fail(400, `Document link is outside current collection: ${link}`);
}

// ---- request and response ------------------------------------------------------------------------

// A map of known properties. For each there is getX(), and setX() and appendX() if it is writable.
function propertyMap(properties, canFit) {
  const map = {};
  const values = create(null);
  const find = (name) => {
    const key = apply(toLowerCase, TheString(name), []);
    return key in values ? values[key] : undefined;
  };
  const writable = (name) => {
    const property = find(name);
    if (property === undefined) throw fail(400, `Property ${TheString(name)} is unknown: cannot set new values.`);
    if (!property.isWritable) throw fail(403, `Property ${TheString(name)} is read-only.`);
    return property;
  };
  const put = (property, value) => {
    if (!canFit(value)) throw fail(413, 'Message size exceeded: the body is too large.');
    property.value = value;
    property.isChanged = true;
  };
  const set = (name, value) => {
    if (name === undefined) return;
    const property = writable(name);
    put(property, value);
    property.isText = false;
  };
  const append = (name, value) => {
    if (name === undefined) return;
    const property = writable(name);
    const old = property.value;
    const isFirst = old === undefined || old === null;
    // What was appended to nothing is the beginning of a text: numbers are not added up.
    const isText = property.isText && typeof old === 'number';
    put(property, isFirst ? value : (isText ? TheString(old) : old) + value);
    property.isText = isFirst || isText;
  };
  for (let i = 0; i < properties.length; i++) {
    const property = properties[i];
    const { name } = property;
    values[apply(toLowerCase, name, [])] = property;
    map[`get${name}`] = () => property.value;
    if (property.isWritable) {
      map[`set${name}`] = (value) => set(name, value);
      map[`append${name}`] = (value) => append(name, value);
    }
  }
  map.getValue = (name) => {
    if (name === undefined) return undefined;
    const property = find(name);
    if (property === undefined) throw fail(400, `Property ${TheString(name)} is unknown.`);
    return property.value;
  };
  map.setValue = set;
  map.appendValue = append;
  return map;
}

// ---- the container -------------------------------------------------------------------------------

function makeCollection(collection, enqueue) {
  const methods = {
    getSelfLink() {
      return collection.selfLink;
    },
    getAltLink() {
      return collection.altLink;
    },
    readDocument(documentLink, options, callback) {
      atLeast('readDocument', arguments.length, 1);
      const end = tail('readDocument', options, callback);
      const link = itemLink(documentLink, collection);
      const ifNoneMatch = text(end.options, 'ifNoneMatch');
      return enqueue({ kind: 'read', ...link, ifNoneMatch }, end.callback);
    },
    readDocuments(collectionLink, options, callback) {
      atLeast('readDocuments', arguments.length, 1);
      const end = tail('readDocuments', options, callback);
      checkCollectionLink(collectionLink, collection);
      return enqueue({ kind: 'feed', ...pageOf(end.options) }, end.callback);
    },
    queryDocuments(collectionLink, query, options, callback) {
      atLeast('queryDocuments', arguments.length, 2);
      const end = tail('queryDocuments', options, callback);
      checkCollectionLink(collectionLink, collection);
      const isScanEnabled = end.options.enableScan === true;
      return enqueue({ kind: 'query', ...queryOf(query), ...pageOf(end.options), isScanEnabled }, end.callback);
    },
    createDocument(collectionLink, body, options, callback) {
      atLeast('createDocument', arguments.length, 2);
      const end = tail('createDocument', options, callback);
      checkCollectionLink(collectionLink, collection);
      return enqueue({ kind: 'create', ...written('createDocument', body, end.options) }, end.callback);
    },
    upsertDocument(collectionLink, body, options, callback) {
      atLeast('upsertDocument', arguments.length, 2);
      const end = tail('upsertDocument', options, callback);
      checkCollectionLink(collectionLink, collection);
      const etag = text(end.options, 'etag');
      return enqueue({ kind: 'upsert', ...written('upsertDocument', body, end.options), etag }, end.callback);
    },
    replaceDocument(documentLink, body, options, callback) {
      atLeast('replaceDocument', arguments.length, 2);
      const end = tail('replaceDocument', options, callback);
      const link = itemLink(documentLink, collection);
      const etag = text(end.options, 'etag');
      const operation = {
        kind: 'replace', ...link, body: itemBody('replaceDocument', body), isIndexed: isIndexed(end.options), etag,
      };
      return enqueue(operation, end.callback);
    },
    deleteDocument(documentLink, options, callback) {
      atLeast('deleteDocument', arguments.length, 1);
      const end = tail('deleteDocument', options, callback);
      const link = itemLink(documentLink, collection);
      return enqueue({ kind: 'delete', ...link, etag: text(end.options, 'etag') }, end.callback);
    },
  };
  const attachments = ['readAttachment', 'readAttachments', 'queryAttachments', 'createAttachment',
    'upsertAttachment', 'replaceAttachment', 'deleteAttachment'];
  for (let i = 0; i < attachments.length; i++) {
    const name = attachments[i];
    methods[name] = () => {
      throw fail(400, `${name}: attachments are not supported.`);
    };
  }
  return methods;
}

function pageOf(options) {
  return { itemsMax: pageSize(options), continuation: text(options, 'continuation') };
}

function written(name, body, options) {
  const generatesId = options.disableAutomaticIdGeneration !== true;
  return { body: itemBody(name, body), isIndexed: isIndexed(options), generatesId };
}

// ---- the query API -------------------------------------------------------------------------------

// Functions that load the query API when the first of them is used.
function addQueries(container, load) {
  let loaded;
  let methods;
  const get = () => {
    if (loaded === undefined) {
      loaded = load();
      methods = loaded.queries(undefined);
    }
    return loaded;
  };
  const names = ['filter', 'map', 'pluck', 'sortBy', 'sortByDescending', 'flatten', 'unwind', 'chain'];
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    container[name] = (...given) => {
      get();
      return apply(methods[name], undefined, given);
    };
  }
  defineProperty(container, 'spatial', { get: () => get().spatial, configurable: true });
  hidden(container, 'proxy', (captures) => {
    if (!isObject(captures)) throw fail(400, 'Invalid argument for proxy: an object is expected.');
    return get().queries(captures);
  });
}

// ---- console -------------------------------------------------------------------------------------

function makeConsole(native, isLogging) {
  function log(...parts) {
    if (!isLogging()) return;
    if (parts.length === 0) throw fail(400, 'console.log: at least one argument is expected.');
    if (!native.log(parts.length === 1 ? TheString(parts[0]) : formatted(parts))) {
      throw fail(413, 'console.log: the log is full.');
    }
  }
  function formatted(parts) {
    const format = parts[0];
    if (typeof format !== 'string') throw fail(400, 'console.log: the first of several arguments must be a string.');
    let out = '';
    let next = 1;
    for (let i = 0; i < format.length; i++) {
      const pair = format[i] === '%' ? format[i + 1] : undefined;
      if (pair === '%') {
        out += '%';
        i++;
      } else if (pair === 's' && next < parts.length) {
        out += TheString(parts[next++]);
        i++;
      } else {
        out += format[i];
      }
    }
    return out;
  }
  return { log };
}

// ---- putting it together -------------------------------------------------------------------------

// Everything is made once, before any script; `begin` fills in what a call brings.
export default function install(native) {
  const callbacks = [];
  const collection = { selfLink: '', altLink: '', self: [], alt: [] };
  let first = 0;
  let config;
  let response;
  let request;

  function enqueue(operation, callback) {
    const result = native.queue(operation, callback !== undefined);
    if (result === true) {
      const value = { callback, kind: operation.kind };
      defineProperty(callbacks, callbacks.length, { value, configurable: true, writable: true });
      return true;
    }
    if (result === false) return false;
    throw fail(result.number, result.message);
  }

  function infoOf(statusCode, continuation) {
    const info = {
      statusCode,
      currentCollectionSizeInMB: config.sizeMb,
      maxCollectionSizeInMB: config.sizeMbMax,
    };
    if (continuation !== undefined) info.continuation = continuation;
    if (statusCode === 304) info.notModified = true;
    return info;
  }

  // Hands the result of the oldest operation to its callback.
  function deliver(statusCode, resource, continuation, refusal) {
    const { callback, kind } = callbacks[first];
    delete callbacks[first];
    first += 1;
    if (refusal !== undefined) {
      // Scripts log such errors as JSON: number and body show, unlike those of ordinary errors.
      const error = fail(statusCode, refusal);
      defineProperty(error, 'number', { value: statusCode, writable: true, configurable: true, enumerable: true });
      defineProperty(error, 'body', { value: refusal, writable: true, configurable: true, enumerable: true });
      if (callback === undefined) throw error;
      callback(error, undefined, infoOf(statusCode));
    } else if (callback !== undefined) {
      const info = infoOf(statusCode, continuation);
      if (kind === 'delete') callback(undefined, info);
      else callback(undefined, resource, info);
    }
  }

  function appendToResponse(items) {
    const old = response.body.value;
    if (old === undefined || old === null) response.map.setBody(items);
    else response.map.setBody((typeof old === 'string' ? old : stringify(old)) + stringify(items));
  }

  function makeRequest(isWritable, operation) {
    const body = { name: 'Body', value: undefined, isWritable, isChanged: false };
    const properties = operation === undefined ? [body] : [body, operation];
    return { body, map: propertyMap(properties, native.fits) };
  }

  function makeResponse(quota, usage) {
    const body = { name: 'Body', value: undefined, isWritable: true, isChanged: false };
    const properties = quota === undefined ? [body] : [body, quota, usage];
    return { body, map: propertyMap(properties, native.fits) };
  }

  const operation = { name: 'OperationType', value: undefined, isWritable: false };
  const quota = { name: 'MaxResourceQuota', value: undefined, isWritable: false };
  const usage = { name: 'ResourceQuotaCurrentUsage', value: undefined, isWritable: false };
  const roles = {
    procedure: { request: makeRequest(false), response: makeResponse() },
    pre: { request: makeRequest(true, operation), response: undefined },
    post: { request: makeRequest(false, operation), response: makeResponse(quota, usage) },
  };
  const container = makeCollection(collection, enqueue);
  const tools = {
    fail, tail, atLeast, pageOf, enqueue, hasResponse: () => response !== undefined, appendToResponse,
  };
  addQueries(container, () => native.loadQueries()(native, tools));
  const current = create(container);
  const context = {
    getCollection() {
      return container;
    },
    getRequest() {
      return request.map;
    },
    abort(error) {
      native.halt(error);
      // The interrupt that ends this loop cannot be caught.
      for (;;);
    },
  };
  hidden(globalThis, 'getContext', function getContext() {
    return context;
  });
  hidden(globalThis, '__', current);
  hidden(globalThis, 'console', makeConsole(native, () => config.isLogging));
  defineProperty(globalThis, 'ErrorCodes', { value: ErrorCodes, enumerable: false });

  function begin(given) {
    config = given;
    collection.selfLink = config.selfLink;
    collection.altLink = config.altLink;
    collection.self = segments(config.selfLink);
    collection.alt = segments(config.altLink);
    ({ request, response } = roles[config.role]);
    request.body.value = config.requestBody;
    operation.value = config.operation;
    current.request = request.map;
    if (response === undefined) return;
    response.body.value = config.responseBody;
    quota.value = config.quota;
    usage.value = config.usage;
    current.response = response.map;
    context.getResponse = getResponse;
  }

  function getResponse() {
    return response.map;
  }

  // The bodies a script leaves, each undefined unless it was set.
  function finish() {
    return {
      request: request.body.isChanged ? request.body.value : undefined,
      response: response !== undefined && response.body.isChanged ? response.body.value : undefined,
    };
  }

  return { begin, deliver, finish };
}
