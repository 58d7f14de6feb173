import type { JSONObject } from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { isRecord } from './json.ts';

/** Provider options, or metadata of an earlier reply: an object of objects, by the name of the provider. */
export type Options = Record<string, JSONObject>;

/** Throws RequestFault for another form. */
export function optionsOf(value: unknown, param: string): Options | undefined {
  if (value === undefined || value === null) return undefined;
  if (isRecord(value) && Object.values(value).every(isRecord)) return value as Options;
  throw new RequestFault(`${param} must be an object of objects, by the name of a provider of the AI SDK`, { param });
}

/** Metadata that a consumer sends back. What is not in the form that this program wrote is left out. */
export const echoedOptions = (value: unknown): { readonly providerOptions?: Options } =>
  isRecord(value) && Object.values(value).every(isRecord) ? { providerOptions: value as Options } : {};
