import { BOUNDS, isObject, parseJson } from '#wire';

export interface SaidLine {
  readonly customId: unknown;
  /** null: it has no response. */
  readonly response: { readonly status: unknown; readonly body: string | null } | null;
  readonly error: { readonly code: unknown; readonly message: unknown } | null;
}

/** Reads a line. Throws GatewayError. The body is written anew, so that it is JSON without ambiguity. */
export function readLine(bytes: Uint8Array): SaidLine {
  const line = parseJson(bytes, BOUNDS.batchAnswer);
  const { custom_id: customId, response, error } = isObject(line) ? line : {};
  return {
    customId,
    response: isObject(response)
      ? {
          status: response['status_code'],
          body: response['body'] === undefined ? null : JSON.stringify(response['body']),
        }
      : null,
    error: isObject(error) ? { code: error['code'], message: error['message'] } : null,
  };
}

export const run = (bytes: unknown): { readonly value: SaidLine; readonly transfer: ArrayBuffer[] } => ({
  value: readLine(new Uint8Array(bytes as ArrayBuffer)),
  transfer: [],
});
