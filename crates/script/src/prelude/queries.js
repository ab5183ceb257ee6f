// The query API on the container: filter, map, pluck, sortBy, flatten, unwind, chain, and spatial functions.
//
// Most scripts never use it, so it is loaded when the first of its functions is.
//
// `native` is as in api.js; `tools` are functions of api.js: fail, tail, atLeast, pageOf, enqueue,
// hasResponse, appendToResponse.

const { defineProperty } = Object;
const { isArray } = Array;
const { apply } = Reflect;
const sourceOf = Function.prototype.toString;
const sort = Array.prototype.sort;
const toUpperCase = String.prototype.toUpperCase;

function hidden(target, name, value) {
  defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}

// A pipeline over the items of the container. Filters and an order that can be said in SQL run as a
// query; whatever comes after the first stage that cannot is evaluated here, item by item. An order
// that cannot be said in SQL needs all pages first.
function makeQueries(native, { fail, tail, atLeast, pageOf, enqueue, hasResponse, appendToResponse }) {
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

function makeSpatial(native, { fail }) {
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

export default function install(native, tools) {
  return { queries: makeQueries(native, tools), spatial: makeSpatial(native, tools) };
}
