import type { JsonRpcError } from '#wire';
import { A2A_ERRORS, errorNameOf } from './a2a-error.ts';
import type { A2aVersion } from './version.ts';

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const STRUCT = 'type.googleapis.com/google.protobuf.Struct';

/**
 * Translates an agent's JSON-RPC error to another version. Code and message stay. In 1.0 `data` is an array of details,
 * with an ErrorInfo for the codes of A2A. In 0.3 `data` may be any value; it goes into that array as a Struct.
 */
export function translateError(from: A2aVersion, target: A2aVersion, error: JsonRpcError): JsonRpcError {
  const { code, message, data } = error;
  if (from === target || target === '0.3' || Array.isArray(data)) return error;
  const name = errorNameOf(code);
  const details = [
    ...(name === null || code <= -32100
      ? []
      : [{ '@type': ERROR_INFO, reason: A2A_ERRORS[name].reason, domain: 'a2a-protocol.org' }]),
    ...(data === undefined || data === null ? [] : [{ '@type': STRUCT, value: data }]),
  ];
  return details.length === 0 ? { code, message } : { code, message, data: details };
}
