import { ERROR } from './json-rpc.ts';

/** HTTP status if the whole reply to a modern request is an error. All other errors are sent with status 200. */
const STATUS: ReadonlyMap<number, number> = new Map([
  [ERROR.parse, 400],
  [ERROR.invalidRequest, 400],
  [ERROR.methodNotFound, 404],
  [ERROR.headerMismatch, 400],
  [ERROR.missingCapability, 400],
  [ERROR.unsupportedVersion, 400],
]);

export function statusOfError(code: number | null): number {
  return (code === null ? undefined : STATUS.get(code)) ?? 200;
}
