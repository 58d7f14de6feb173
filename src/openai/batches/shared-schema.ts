import { GatewayError } from '#errors';

/** The least and the most time for which a client may have a file kept, in seconds, as in OpenAI's API. */
const SECONDS_MIN = 3_600;
const SECONDS_MAX = 2_592_000;
const MS = 1_000;

export const expiresAfterSchema = {
  type: 'object',
  required: ['anchor', 'seconds'],
  properties: {
    anchor: { type: 'string', const: 'created_at' },
    seconds: { type: 'integer', minimum: SECONDS_MIN, maximum: SECONDS_MAX },
  },
};

/**
 * The time for which a file is kept, in milliseconds: at most `mostMs`, which is also the default. Throws GatewayError
 * `invalid_request`. `name`: that of the field.
 */
export function keepMsOf(name: string, anchor: unknown, seconds: unknown, mostMs: number): number {
  if (anchor === undefined && seconds === undefined) return mostMs;
  const count = typeof seconds === 'string' && /^\d{1,9}$/.test(seconds) ? Number(seconds) : seconds;
  if (anchor !== 'created_at')
    throw new GatewayError('invalid_request', `${name}.anchor must be "created_at"`, { param: `${name}.anchor` });
  if (!Number.isInteger(count) || (count as number) < SECONDS_MIN || (count as number) > SECONDS_MAX)
    throw new GatewayError('invalid_request', `${name}.seconds must be ${SECONDS_MIN} to ${SECONDS_MAX}`, {
      param: `${name}.seconds`,
    });
  return Math.min((count as number) * MS, mostMs);
}

export const described = (summary: string, operationId: string, description: string) => ({
  tags: ['Batches'],
  summary,
  operationId,
  description,
});

export const idParams = (owner: string) => ({
  type: 'object',
  required: [`${owner}_id`],
  properties: { [`${owner}_id`]: { type: 'string', minLength: 1, maxLength: 128, description: `Id of a ${owner}.` } },
});
