import { BOUNDS, readForeign, isObject, readJson, type JsonLimits } from '#wire';
import { GatewayError } from '#errors';
import type { BatchFault, LineError, LineReply } from './batch.ts';

export interface LineRequest {
  readonly customId: string;
  /** JSON text. */
  readonly body: string;
  /** Why no line may have this body; null if its route decides. */
  readonly refusal: LineError | null;
}

type Fault = Omit<BatchFault, 'line'>;

const ID_CHARS_MAX = 512;

const fault = (code: string, message: string, param: string | null = null): Fault => ({ code, message, param });

export interface LineLimits extends JsonLimits {
  readonly linesMax: number;
  readonly lineBytesMax: number;
}

/**
 * Reads a line: `{"custom_id": …, "method": "POST", "url": …, "body": {…}}`. `bytes`: null if it is too long.
 * `endpoint`: what its url must be.
 */
export async function readLine(
  bytes: Buffer | null,
  endpoint: string,
  limits: LineLimits,
): Promise<LineRequest | Fault> {
  const { lineBytesMax } = limits;
  if (bytes === null || bytes.byteLength > lineBytesMax)
    return fault('line_too_long', `The line is longer than ${lineBytesMax} bytes (limits.chat_body_bytes_max)`);
  let line: unknown;
  try {
    line = await readJson(bytes, limits);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return fault('invalid_json_line', `This line is not parseable as valid JSON: ${error.message}`);
  }
  if (!isObject(line)) return fault('invalid_json_line', 'This line is not a JSON object');
  const { custom_id: customId, method, url, body } = line;
  if (typeof customId !== 'string' || customId === '' || customId.length > ID_CHARS_MAX)
    return fault(
      customId === undefined ? 'missing_required_parameter' : 'invalid_request',
      `custom_id must be a text of 1 to ${ID_CHARS_MAX} characters`,
      'custom_id',
    );
  if (method !== 'POST') return fault('invalid_method', 'method must be "POST"', 'method');
  if (url !== endpoint)
    return fault('mismatched_endpoint', `url must be the endpoint of the batch, ${JSON.stringify(endpoint)}`, 'url');
  if (!isObject(body)) return fault('missing_required_parameter', 'body must be a JSON object', 'body');
  // As in every streamed request, the answer would have no line of its own.
  const param = ['stream', 'background'].find((field) => (body[field] ?? false) !== false);
  const refusal =
    param === undefined
      ? null
      : { code: 'invalid_request', message: `${param} is not possible in a batch: leave it out`, param };
  return { customId, body: JSON.stringify(body), refusal };
}

/** The reply to a line whose body no line may have. */
export const refusedLine = (requestId: string, { code, message, param }: LineError): LineReply => ({
  status: 400,
  requestId,
  body: JSON.stringify({ error: { message, type: code, code, param } }),
});

/** Resolves with the `custom_id` of a line that was read before, with other limits; with '' if it has none. */
export async function customIdOf(bytes: Buffer): Promise<string> {
  const line = await readForeign(bytes, BOUNDS.fileLine).catch(() => null);
  const customId = isObject(line) ? line['custom_id'] : null;
  return typeof customId === 'string' ? customId : '';
}
