import { isObject, type JsonObject } from '#wire';
import { PROTOCOL_NAMES } from './unambiguous.ts';
import { A2aError } from '../wire/errors.ts';
import { protoName } from '../wire/rest.ts';

/** 0.3 has other names for these members over HTTP+JSON. */
const OTHER_STEPS: ReadonlyMap<string, string> = new Map([
  ['message', 'request'],
  ['parts', 'content'],
]);

/** The canonical names of the fields whose proto name differs, in the objects of a request, outermost first. */
const PLACES = PROTOCOL_NAMES.flatMap(([path, { exact }]) => {
  const renamed = [...exact].map((name) => [protoName(name), name] as const).filter(([proto, name]) => proto !== name);
  const names = new Map(renamed);
  const paths = path.reduce<readonly (readonly string[])[]>(
    (before, step) => {
      const steps = [step, ...(OTHER_STEPS.has(step) ? [OTHER_STEPS.get(step)!] : [])];
      return before.flatMap((begun) => steps.map((next) => [...begun, next]));
    },
    [[]],
  );
  return names.size === 0 ? [] : paths.map((one) => ({ path: one, names }));
});
const ANY_PROTO_NAME = new RegExp(
  `"(?:${[...new Set(PLACES.flatMap(({ names }) => [...names.keys()]))].join('|')})"\\s*:`,
);

/**
 * Replaces proto names with canonical names. Readers of ProtoJSON accept both, and both of the protocol's test kits
 * send both. The renamed parameters are forwarded, so that the agent reads the same as the gateway. Returns the same
 * object if no name changes. `text` is JSON text that contains the parameters: if it has no proto name, the search is
 * skipped. Throws A2aError `InvalidParams` if a member is present under both names.
 */
export function withCanonicalNames(params: JsonObject, text: string): JsonObject {
  if (!ANY_PROTO_NAME.test(text)) return params;
  return PLACES.reduce((renamed, { path, names }) => renameAt(renamed, path, names, '') as JsonObject, params);
}

function renameAt(value: unknown, path: readonly string[], names: ReadonlyMap<string, string>, at: string): unknown {
  const [step, ...rest] = path;
  if (step === '*')
    return Array.isArray(value)
      ? value.map((one: unknown, index) => renameAt(one, rest, names, `${at}[${index}]`))
      : value;
  if (!isObject(value)) return value;
  if (step === undefined) return renameIn(value, names, at);
  if (!isObject(value[step]) && !Array.isArray(value[step])) return value;
  const inner = renameAt(value[step], rest, names, at === '' ? step : `${at}.${step}`);
  return inner === value[step] ? value : { ...value, [step]: inner };
}

function renameIn(object: JsonObject, names: ReadonlyMap<string, string>, at: string): JsonObject {
  const found = Object.keys(object).filter((key) => names.has(key));
  if (found.length === 0) return object;
  const both = found.find((key) => Object.hasOwn(object, names.get(key)!));
  if (both !== undefined) {
    const [param, path] = [names.get(both)!, at === '' ? '' : `${at}.`];
    throw new A2aError('InvalidParams', `${path}${both} and ${path}${param} are the same field: send only ${param}`, {
      param: `${path}${param}`,
    });
  }
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [names.get(key) ?? key, value]));
}
