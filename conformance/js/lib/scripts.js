// Helpers for the files about server-side scripts.
//
// Scripts are written as functions here, as people do: the SDK sends their text. What they call
// (`getContext`, `__`) exists only in the server.

import assert from "node:assert/strict";

import { TriggerOperation, TriggerType } from "@azure/cosmos";

import { unique } from "./fixture.js";

/** Registers a procedure and answers how to execute it. */
export async function procedure(container, body, id = unique("procedure")) {
  await container.scripts.storedProcedures.create({ id, body });
  return (key, args, options) => container.scripts.storedProcedure(id).execute(key, args, options);
}

/** Registers a procedure, executes it once and answers what it put into its response. */
export async function run(container, body, key, ...args) {
  const execute = await procedure(container, body);
  const response = await execute(key, args);
  assert.equal(response.statusCode, 200);
  return response.resource;
}

/** Registers a trigger and answers its id. */
export async function trigger(container, triggerType, triggerOperation, body) {
  const id = unique("trigger");
  await container.scripts.triggers.create({ id, body, triggerType, triggerOperation });
  return id;
}

export const before = (container, body, operation = TriggerOperation.All) =>
  trigger(container, TriggerType.Pre, operation, body);

export const after = (container, body, operation = TriggerOperation.All) =>
  trigger(container, TriggerType.Post, operation, body);

/** Registers a user-defined function under a name in each container. */
export async function define(containers, id, body) {
  for (const { scripts } of [containers].flat()) await scripts.userDefinedFunctions.create({ id, body });
}

/** What a failed script said: the text in the document that its message is. */
export function said(error) {
  const document = /^Message: (\{.*\})\r\nActivityId/s.exec(error.body.message)?.[1];
  assert.ok(document, error.body.message);
  return JSON.parse(document).Errors[0];
}

export async function exists(container, id, key = "p") {
  return (await container.item(id, key).read()).resource !== undefined;
}

export const LOG = "x-ms-documentdb-script-log-results";
