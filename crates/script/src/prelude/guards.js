// What every runtime gets before a script: bounds where the engine looks neither at the clock nor at the
// memory, and an Error that takes a number.

// More elements than fit into the memory of a runtime: only an array with holes, or an object that
// merely claims a length, is longer.
const LENGTH_MAX = 2 ** 24;

const { apply, construct } = Reflect;
const { defineProperty, setPrototypeOf } = Object;
const TheRangeError = RangeError;

function hidden(target, name, value) {
  defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
}

function checkLength(list) {
  if (list !== null && typeof list === 'object' && list.length > LENGTH_MAX) {
    throw new TheRangeError('Array is too long');
  }
}

// Each of these walks from 0 to length in one go.
const WALKERS = [
  'concat', 'copyWithin', 'fill', 'flat', 'join', 'reverse', 'shift', 'slice', 'sort', 'splice',
  'toLocaleString', 'toReversed', 'toSorted', 'toSpliced', 'unshift', 'with',
];

function boundArrays(prototype) {
  for (let i = 0; i < WALKERS.length; i++) {
    const name = WALKERS[i];
    const walk = prototype[name];
    const bounded = {
      [name]() {
        checkLength(this);
        if (name === 'concat') {
          for (let at = 0; at < arguments.length; at++) checkLength(arguments[at]);
        }
        return apply(walk, this, arguments);
      },
    }[name];
    defineProperty(bounded, 'length', { value: walk.length, configurable: true });
    hidden(prototype, name, bounded);
  }
}

// `new Error(404, 'text')` has a number and a message. Everything else about errors stays as it is.
function numberErrors(global) {
  const Plain = global.Error;
  const { captureStackTrace } = Plain;
  function Error(first, second) {
    const isNumbered = typeof first === 'number';
    const isPair = isNumbered && arguments.length > 1;
    const rest = isPair ? [second, arguments[2]] : [first, second];
    const error = construct(Plain, arguments.length === 0 ? [] : rest, new.target || Error);
    if (isNumbered) hidden(error, 'number', first);
    captureStackTrace(error, Error);
    return error;
  }
  Error.prototype = Plain.prototype;
  defineProperty(Error, 'prototype', { writable: false });
  defineProperty(Error, 'length', { value: 1, configurable: true });
  hidden(Error, 'captureStackTrace', captureStackTrace);
  hidden(Plain.prototype, 'constructor', Error);
  const kinds = ['EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError',
    'AggregateError', 'InternalError'];
  for (let i = 0; i < kinds.length; i++) {
    if (global[kinds[i]]) setPrototypeOf(global[kinds[i]], Error);
  }
  hidden(global, 'Error', Error);
}

export default function install() {
  boundArrays(Array.prototype);
  numberErrors(globalThis);
}
