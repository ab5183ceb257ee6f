// What every runtime gets before a script: bounds where the engine looks neither at the clock nor at the
// memory, an Error that takes a number, and random numbers.

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
function boundArrays(prototype) {
  const {
    concat, copyWithin, fill, flat, join, reverse, shift, slice, sort, splice, toLocaleString, toReversed,
    toSorted, toSpliced, unshift, with: replaced,
  } = prototype;
  const bounded = {
    concat() {
      checkLength(this);
      for (let i = 0; i < arguments.length; i++) checkLength(arguments[i]);
      return apply(concat, this, arguments);
    },
    copyWithin() { checkLength(this); return apply(copyWithin, this, arguments); },
    fill() { checkLength(this); return apply(fill, this, arguments); },
    flat() { checkLength(this); return apply(flat, this, arguments); },
    join() { checkLength(this); return apply(join, this, arguments); },
    reverse() { checkLength(this); return apply(reverse, this, arguments); },
    shift() { checkLength(this); return apply(shift, this, arguments); },
    slice() { checkLength(this); return apply(slice, this, arguments); },
    sort() { checkLength(this); return apply(sort, this, arguments); },
    splice() { checkLength(this); return apply(splice, this, arguments); },
    toLocaleString() { checkLength(this); return apply(toLocaleString, this, arguments); },
    toReversed() { checkLength(this); return apply(toReversed, this, arguments); },
    toSorted() { checkLength(this); return apply(toSorted, this, arguments); },
    toSpliced() { checkLength(this); return apply(toSpliced, this, arguments); },
    unshift() { checkLength(this); return apply(unshift, this, arguments); },
    with() { checkLength(this); return apply(replaced, this, arguments); },
  };
  // Assigning keeps them out of enumerations, as they were.
  for (const name in bounded) prototype[name] = bounded[name];
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
  Plain.prototype.constructor = Error;
  const kinds = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
  for (let i = 0; i < kinds.length; i++) setPrototypeOf(kinds[i], Error);
  global.Error = Error;
}

// Every script finds the state of the engine's own random numbers as it was in the beginning.
function randomize(math, next) {
  const replaced = {
    random() {
      return next();
    },
  };
  math.random = replaced.random;
}

export default function install(next) {
  boundArrays(Array.prototype);
  numberErrors(globalThis);
  randomize(Math, next);
}
