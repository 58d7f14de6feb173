import { type GatewayError, toHttpError } from '#wire';

interface MediaError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An error as the doors of images have it: `code` is a word, such as `invalid_model`. */
export function toMediaError(error: GatewayError): MediaError {
  const { status, headers, body } = toHttpError(error);
  const { message, type, param } = body.error;
  return { status, headers, body: { ...body, error: { code: error.code, message, type, param } } };
}
