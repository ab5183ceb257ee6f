// Twelve books by seven authors: what the files about queries ask for. `stars` has a value of every
// type and is missing twice; everything else has one type.

import assert from "node:assert/strict";

import { all } from "./fixture.js";

export const BOOKS = [
  { id: "hunger", author: "Hamsun", land: "no", year: 1890, price: 12, stars: 5, tags: ["classic", "short"], printed: "1890-06-15T12:00:00.0000000Z", editions: [{ lang: "no", copies: 300 }, { lang: "en", copies: 500 }] },
  { id: "pan", author: "Hamsun", land: "no", year: 1894, price: 9.5, stars: 4, tags: ["classic"], printed: "1894-12-01T08:30:00.0000000Z", editions: [{ lang: "no", copies: 100 }] },
  { id: "peer", author: "Ibsen", land: "no", year: 1867, price: 15, tags: ["play", "classic"], printed: "1867-11-14T00:00:00.0000000Z", editions: [] },
  { id: "ghosts", author: "Ibsen", land: "no", year: 1881, price: 8, stars: null, tags: ["play"], printed: "1881-12-13T00:00:00.0000000Z" },
  { id: "inferno", author: "Strindberg", land: "se", year: 1897, price: 11, stars: 3, tags: [], editions: [{ lang: "fr", copies: 40 }, { lang: "sv", copies: 80 }] },
  { id: "father", author: "Strindberg", land: "se", year: 1887, price: 7, stars: "three", tags: ["play"] },
  { id: "gösta", author: "Lagerlöf", land: "se", year: 1891, price: 14, stars: 5, tags: ["classic", "long"] },
  { id: "nils", author: "Lagerlöf", land: "se", year: 1906, price: 20, stars: [5], tags: ["children"] },
  { id: "winter", author: "Blixen", land: "dk", year: 1942, price: 13, stars: { of: 5 } },
  { id: "africa", author: "Blixen", land: "dk", year: 1937, price: 16, tags: ["memoir", "long"] },
  { id: "kalevala", author: "Lönnrot", land: "fi", year: 1835, price: 25, stars: true, tags: ["epic", "long", "classic"] },
  { id: "egyptian", author: "Waltari", land: "fi", year: 1945, price: 18, stars: false, tags: ["long"] },
];

const PARTITION_KEY = { paths: ["/author"], kind: "Hash", version: 2 };

/** The books in a container with one physical partition and in one with three. */
export async function shelves(t, definition = {}) {
  const one = await t.container({ partitionKey: PARTITION_KEY, ...definition });
  const many = await t.container({ partitionKey: PARTITION_KEY, throughput: 30_000, ...definition });
  for (const container of [one, many]) {
    for (const book of BOOKS) await container.items.create({ ...book });
  }
  return [one, many];
}

/**
 * Expects the same rows from each container, in pages of the server's choice, of one row and of
 * three. Rows come in the order given if `ordered`, else in any.
 */
export async function answers(containers, query, expected, { ordered = false, ...options } = {}) {
  const order = ordered ? (rows) => rows : byText;
  for (const container of containers) {
    for (const maxItemCount of [undefined, 1, 3]) {
      const found = await all(container.items.query(query, { maxItemCount, ...options }));
      assert.deepEqual(order(found), order(expected), `${textOf(query)} in pages of ${maxItemCount}`);
    }
  }
}

/** A query with its parameters by name. */
export function ask(query, values) {
  const parameters = Object.entries(values).map(([name, value]) => ({ name: `@${name}`, value }));
  return { query, parameters };
}

export function byText(rows) {
  const text = (row) => JSON.stringify(row);
  return [...rows].sort((one, other) => (text(one) < text(other) ? -1 : 1));
}

function textOf(query) {
  return typeof query === "string" ? query : query.query;
}
