// What a stored procedure or trigger finds: getContext(), __, console, ErrorCodes.
//
// The functions here check arguments and shape values. What touches the container goes through
// `native`, which is implemented in Rust:
//
//   queue(operation)              true: queued; false: not accepted; an object: refused, with a number
//   evaluate(expression, values)  a SQL scalar expression; parameters are @0, @1 …
//   translate(source, captures)   a predicate as SQL, or undefined if it has to be called
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
const sourceOf = Function.prototype.toString;
const sort = Array.prototype.sort;
const split = String.prototype.split;
const toLowerCase = String.prototype.toLowerCase;
const toUpperCase = String.prototype.toUpperCase;

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
    if (name !== undefined) put(writable(name), value);
  };
  const append = (name, value) => {
    if (name === undefined) return;
    const property = writable(name);
    const old = property.value;
    put(property, old === undefined || old === null ? value : old + value);
  };
  for (let i = 0; i < properties.length; i++) {
    const property = properties[i];
    const { name } = property;
    values[apply(toLowerCase, name, [])] = property;
    hidden(map, `get${name}`, () => property.value);
    if (property.isWritable) {
      hidden(map, `set${name}`, (value) => set(name, value));
      hidden(map, `append${name}`, (value) => append(name, value));
    }
  }
  hidden(map, 'getValue', (name) => {
    if (name === undefined) return undefined;
    const property = find(name);
    if (property === undefined) throw fail(400, `Property ${TheString(name)} is unknown.`);
    return property.value;
  });
  hidden(map, 'setValue', set);
  hidden(map, 'appendValue', append);
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

// A pipeline over the items of the container. Filters and an order that can be said in SQL run as a
// query; whatever comes after the first stage that cannot is evaluated here, item by item. An order
// that cannot be said in SQL needs all pages first.
function makeQueries(native, enqueue, hasResponse, appendToResponse) {
  function start(captures) {
    return { stages: [], captures, isAccepted: true };
  }

  function callable(name, what, value) {
    if (typeof value !== 'function') throw fail(400, `Invalid ${what} for ${name}: a function is expected.`);
    return value;
  }

  const stages = {
    filter(predicate) {
      atLeast('filter', arguments.length, 1);
      return { kind: 'filter', by: callable('filter', 'predicate', predicate) };
    },
    map(transformation) {
      atLeast('map', arguments.length, 1);
      return { kind: 'map', by: callable('map', 'transformation', transformation) };
    },
    pluck(name) {
      atLeast('pluck', arguments.length, 1);
      if (typeof name !== 'string') throw fail(400, 'Invalid property name for pluck: a string is expected.');
      return { kind: 'pluck', name };
    },
    sortBy(key) {
      atLeast('sortBy', arguments.length, 1);
      return { kind: 'sort', by: callable('sortBy', 'predicate', key), sign: 1 };
    },
    sortByDescending(key) {
      atLeast('sortByDescending', arguments.length, 1);
      return { kind: 'sort', by: callable('sortByDescending', 'predicate', key), sign: -1 };
    },
    flatten(isShallow) {
      if (isShallow !== undefined && typeof isShallow !== 'boolean') {
        throw fail(400, 'Invalid argument for flatten: a boolean is expected.');
      }
      return { kind: 'flatten', depth: isShallow === true ? 1 : Infinity };
    },
    unwind(innerSelector, resultSelector) {
      atLeast('unwind', arguments.length, 1);
      callable('unwind', 'innerCollectionSelector', innerSelector);
      if (innerSelector.length !== 1) {
        throw fail(400, 'Invalid innerCollectionSelector for unwind: it must declare one parameter.');
      }
      if (resultSelector !== undefined) {
        callable('unwind', 'resultSelector', resultSelector);
        if (resultSelector.length !== 2) {
          throw fail(400, 'Invalid resultSelector for unwind: it must declare two parameters.');
        }
      }
      return { kind: 'unwind', by: innerSelector, result: resultSelector };
    },
  };

  // How many of the arguments belong to the stage itself, the rest being options and callback.
  function ownArguments(name, given) {
    if (name === 'flatten') return typeof given[0] === 'boolean' ? 1 : 0;
    if (name === 'unwind') return typeof given[1] === 'function' && given[1].length === 2 ? 2 : 1;
    return 1;
  }

  function push(list, value) {
    defineProperty(list, list.length, { value, writable: true, configurable: true, enumerable: true });
  }

  // The part of the pipeline that runs as SQL: filters, then at most one order.
  function plan(pipeline) {
    const conditions = [];
    const parameters = [];
    let order;
    let done = 0;
    for (; done < pipeline.stages.length; done++) {
      const stage = pipeline.stages[done];
      if (stage.kind === 'filter' && order === undefined) {
        const translated = native.translate(apply(sourceOf, stage.by, []), pipeline.captures, parameters.length);
        if (translated === undefined) break;
        push(conditions, translated.text);
        for (let i = 0; i < translated.parameters.length; i++) push(parameters, translated.parameters[i]);
      } else if (stage.kind === 'sort' && order === undefined) {
        const path = native.translatePath(apply(sourceOf, stage.by, []));
        if (path === undefined) break;
        order = path + (stage.sign < 0 ? ' DESC' : ' ASC');
      } else {
        break;
      }
    }
    if (done === 0) return { rest: pipeline.stages };
    let query = 'SELECT VALUE c FROM c';
    for (let i = 0; i < conditions.length; i++) query += (i === 0 ? ' WHERE ' : ' AND ') + `(${conditions[i]})`;
    if (order !== undefined) query += ` ORDER BY ${order}`;
    // Filters stay in the rest: SQL and JavaScript disagree about some values, and JavaScript decides.
    const rest = [];
    for (let i = 0; i < pipeline.stages.length; i++) {
      if (i >= done || pipeline.stages[i].kind === 'filter') push(rest, pipeline.stages[i]);
    }
    return { query, parameters, rest };
  }

  function flattenInto(target, list, depth) {
    for (let i = 0; i < list.length; i++) {
      if (isArray(list[i]) && depth > 0) flattenInto(target, list[i], depth - 1);
      else push(target, list[i]);
    }
  }

  function compareKeys(sign) {
    const rank = (key) => {
      if (key === undefined) return 0;
      if (key === null) return 1;
      const at = { boolean: 2, number: 3, string: 4 }[typeof key];
      return at === undefined ? 5 : at;
    };
    return (left, right) => {
      const [a, b] = [rank(left.key), rank(right.key)];
      if (a !== b) return sign * (a - b);
      if (left.key < right.key) return -sign;
      return left.key > right.key ? sign : 0;
    };
  }

  const steps = {
    filter(stage, items, out) {
      for (let i = 0; i < items.length; i++) if (stage.by(items[i])) push(out, items[i]);
    },
    map(stage, items, out) {
      for (let i = 0; i < items.length; i++) push(out, stage.by(items[i]));
    },
    pluck(stage, items, out) {
      for (let i = 0; i < items.length; i++) {
        const value = isObject(items[i]) ? items[i][stage.name] : undefined;
        if (value !== undefined) push(out, value);
      }
    },
    sort(stage, items, out) {
      const keyed = [];
      for (let i = 0; i < items.length; i++) push(keyed, { key: stage.by(items[i]), item: items[i] });
      apply(sort, keyed, [compareKeys(stage.sign)]);
      for (let i = 0; i < keyed.length; i++) push(out, keyed[i].item);
    },
    flatten(stage, items, out) {
      flattenInto(out, items, stage.depth);
    },
    unwind(stage, items, out) {
      for (let i = 0; i < items.length; i++) {
        const inner = stage.by(items[i]);
        if (!isArray(inner)) continue;
        for (let at = 0; at < inner.length; at++) {
          push(out, stage.result === undefined ? [items[i], inner[at]] : stage.result(items[i], inner[at]));
        }
      }
    },
  };

  function evaluate(rest, items) {
    for (let i = 0; i < rest.length; i++) {
      const out = [];
      steps[rest[i].kind](rest[i], items, out);
      items = out;
    }
    return items;
  }

  function run(pipeline, name, options, callback) {
    const end = tail(name, options, callback);
    if (end.callback === undefined && !hasResponse()) {
      throw fail(400, `${name} needs a callback: a pre-trigger has no response.`);
    }
    const { query, parameters, rest } = plan(pipeline);
    const needsAll = hasSort(rest);
    const { itemsMax, continuation } = pageOf(end.options);
    const gathered = [];
    const answer = (error, items, info) => {
      if (end.callback !== undefined) return end.callback(error, items, info);
      if (error !== undefined) throw error;
      return appendToResponse(items);
    };
    const request = (from) => {
      const operation = query === undefined
        ? { kind: 'feed', itemsMax, continuation: from }
        : { kind: 'query', text: query, parameters, itemsMax, continuation: from, isScanEnabled: true };
      return enqueue(operation, receive);
    };
    function receive(error, items, info) {
      if (error !== undefined) return answer(error, undefined, info);
      if (!needsAll) return answer(undefined, evaluate(rest, items), info);
      for (let i = 0; i < items.length; i++) push(gathered, items[i]);
      if (info.continuation === undefined) return answer(undefined, evaluate(rest, gathered), info);
      if (!request(info.continuation)) {
        const message = 'The items could not be read within the limits of the script.';
        return answer(fail(403, message), undefined, info);
      }
      return undefined;
    }
    return { isAccepted: request(continuation) };
  }

  function hasSort(rest) {
    for (let i = 0; i < rest.length; i++) if (rest[i].kind === 'sort') return true;
    return false;
  }

  // Stages followed by value(), the only place where options and callback may be.
  function chained(captures) {
    const pipeline = start(captures);
    const chain = { isAccepted: true };
    const names = ['filter', 'map', 'pluck', 'sortBy', 'sortByDescending', 'flatten', 'unwind'];
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      hidden(chain, name, (...given) => {
        if (!chain.isAccepted) return chain;
        if (given.length > ownArguments(name, given)) {
          throw fail(400, `${name}: options and callback go to value() at the end of the chain.`);
        }
        push(pipeline.stages, apply(stages[name], undefined, given));
        return chain;
      });
    }
    hidden(chain, 'value', (options, callback) => {
      if (!chain.isAccepted) return chain;
      chain.isAccepted = run(pipeline, 'value', options, callback).isAccepted;
      return chain;
    });
    return chain;
  }

  function queries(captures) {
    const methods = {
      chain() {
        return chained(captures);
      },
    };
    const names = ['filter', 'map', 'pluck', 'sortBy', 'sortByDescending', 'flatten', 'unwind'];
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      methods[name] = (...given) => {
        const count = ownArguments(name, given);
        const own = [];
        for (let at = 0; at < count && at < given.length; at++) push(own, given[at]);
        const pipeline = start(captures);
        push(pipeline.stages, apply(stages[name], undefined, own));
        return run(pipeline, name, given[count], given[count + 1]);
      };
    }
    return methods;
  }
  return queries;
}

function makeSpatial(native) {
  const functions = [['distance', 2], ['intersects', 2], ['within', 2], ['isValid', 1], ['isValidDetailed', 1]];
  const spatial = {};
  for (let i = 0; i < functions.length; i++) {
    const [name, count] = functions[i];
    const expression = `ST_${apply(toUpperCase, name, [])}(${count === 2 ? '@0, @1' : '@0'})`;
    hidden(spatial, name, (first, second) => {
      if (!isObject(first) || (count === 2 && !isObject(second))) {
        throw fail(400, `Invalid argument for ${name}: an object is expected.`);
      }
      const values = count === 2 ? [first, second] : [first];
      const result = native.evaluate(expression, values);
      if (result.error !== undefined) throw fail(result.error.number, result.error.message);
      return result.value;
    });
  }
  return spatial;
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

// Everything is made while no script waits for it; `begin` fills in what a call brings.
export default function install(native) {
  const callbacks = [];
  const collection = { selfLink: '', altLink: '', self: [], alt: [] };
  let first = 0;
  let config;
  let response;
  let request;

  function enqueue(operation, callback) {
    const result = native.queue(operation);
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
      const error = fail(statusCode, refusal);
      hidden(error, 'body', refusal);
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

  function makeRequest() {
    const isWritable = config.role === 'pre';
    const body = { name: 'Body', value: config.requestBody, isWritable, isChanged: false };
    const properties = [body];
    if (config.operation !== undefined) {
      properties[1] = { name: 'OperationType', value: config.operation, isWritable: false };
    }
    return { body, map: propertyMap(properties, native.fits) };
  }

  function makeResponse() {
    const body = { name: 'Body', value: config.responseBody, isWritable: true, isChanged: false };
    const properties = [body];
    if (config.role === 'post') {
      properties[1] = { name: 'MaxResourceQuota', value: config.quota, isWritable: false };
      properties[2] = { name: 'ResourceQuotaCurrentUsage', value: config.usage, isWritable: false };
    }
    return { body, map: propertyMap(properties, native.fits) };
  }

  const queries = makeQueries(native, enqueue, () => response !== undefined, appendToResponse);
  const container = { ...makeCollection(collection, enqueue), ...queries(undefined) };
  hidden(container, 'spatial', makeSpatial(native));
  hidden(container, 'proxy', (captures) => {
    if (!isObject(captures)) throw fail(400, 'Invalid argument for proxy: an object is expected.');
    return queries(captures);
  });
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
    request = makeRequest();
    hidden(current, 'request', request.map);
    if (config.role === 'pre') return;
    response = makeResponse();
    hidden(current, 'response', response.map);
    context.getResponse = function getResponse() {
      return response.map;
    };
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
