import type { JsonRpcError } from '#wire';
import { A2A_ERRORS, errorNameOf } from './a2a-error.ts';
import type { A2aVersion } from './version.ts';

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const STRUCT = 'type.googleapis.com/google.protobuf.Struct';

/**
 * An agent's JSON-RPC error in another version's shape. Code and message stay. 1.0's `data` is an array of details
 * with an ErrorInfo for A2A's own codes; 0.3's is anything, and goes into that array as a Struct.
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
