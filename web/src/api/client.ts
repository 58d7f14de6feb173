import createClient from 'openapi-fetch';
import type { paths } from './schema.d.ts';
import { payer } from './acting.ts';
import { send } from './request.ts';

export type { AnswerOf, BodyOf, Schemas } from './types.ts';

type Value = string | number | boolean;

/** A name keeps its slashes, as in `/models/demo/chat`. */
const pathOf = (path: string, values: Readonly<Record<string, unknown>>) =>
  path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const value = String(values[name]);
    return name === 'name' ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value);
  });

/** Members that are undefined or empty are omitted. */
export const queryOf = (query: Readonly<Record<string, unknown>>): string =>
  new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value as Value)]],
    ),
  ).toString();

const clientOf = (fetch: (request: Request) => Promise<Response>) =>
  createClient<paths>({ fetch, pathSerializer: pathOf, querySerializer: queryOf });

/** Requests to the gateway, with the types of its OpenAPI document. They reject with ApiError. */
export const api = clientOf((request) => send(request));
/** The same for the signed-in account, even if this tab acts for an organisation. */
export const ownApi = clientOf((request) => send(request, null));
/** The same for the account that pays for calls of the playground. */
export const payerApi = clientOf((request) => send(request, payer()));

/** Reads the JSON of an answer. null if the answer has no body. */
export async function call<T>(asked: Promise<{ readonly data?: T }>): Promise<T> {
  return ((await asked).data ?? null) as T;
}

/** Reads the member `data` of an answer, as listings have it. */
export async function data<T>(asked: Promise<{ readonly data?: { readonly data: T } }>): Promise<T> {
  return (await call(asked)).data;
}
