import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#wire';
import type { Admission } from '#gateway';
import {
  isRestricted,
  requireFullRights,
  type KeyChanges,
  type KeyStore,
  type NewKeyFields,
  requireFreshSignature,
  type Nonces,
} from '#auth/keys';
import {
  keyBodyProperties,
  keyChangesSchema,
  keySchema,
  parseKeyBody,
  viewKey,
  type KeyBody,
  type KeyView,
  type KeyViewDeps,
} from './key-view.ts';
import { pageSchema, type Page } from './page.ts';

export interface KeysDeps extends KeyViewDeps {
  /** Whether anything is offered under a name that a key may be limited to. */
  readonly offers: (service: string) => boolean;
  readonly keys: KeyStore;
}

interface HashParams {
  readonly hash: string;
}

const hashParams = {
  type: 'object',
  required: ['hash'],
  properties: { hash: { type: 'string', description: 'The hash of the key.' } },
} as const;

export const newKeySchema = {
  type: 'object',
  required: ['key', 'data'],
  properties: {
    key: { type: 'string', description: 'The key itself: shown in this answer and never again.' },
    data: keySchema,
    warnings: {
      type: 'array',
      items: { type: 'string' },
      description: 'What may not be meant, in words; left out where there is nothing.',
    },
  },
} as const;
export const keyListSchema = {
  type: 'object',
  required: ['data'],
  properties: { data: { type: 'array', items: keySchema } },
} as const;
export const oneKeySchema = { type: 'object', required: ['data'], properties: { data: keySchema } } as const;
export const deletedKeySchema = {
  type: 'object',
  required: ['deleted', 'data'],
  properties: {
    deleted: { type: 'boolean' },
    data: {
      type: 'object',
      required: ['hash', 'deleted'],
      properties: { hash: { type: 'string' }, deleted: { type: 'boolean' } },
    },
  },
} as const;

/**
 * Adds `/key` and `/keys` to `app`, which is behind admission: what a caller sees and does of the keys of its own
 * account.
 */
export function addKeysRoutes(
  app: FastifyInstance,
  deps: KeysDeps & { readonly nonces: Pick<Nonces, 'use'> },
  admissionOf: (request: FastifyRequest) => Admission,
): void {
  const { keys, now } = deps;

  app.get<{ Querystring: Page }>(
    '/keys',
    {
      schema: {
        summary: 'List your keys',
        description:
          'The keys of your account, the oldest first; to a key with a spending limit, an expiry or a list of services, itself alone. The keys themselves cannot be shown again.',
        tags: ['Account'],
        querystring: pageSchema,
        response: { 200: keyListSchema },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      if (!(await isRestricted(keys, caller.key))) return { data: await viewKeys(deps, caller.account, request.query) };
      const own = await keys.find(caller.key!.hash);
      return { data: own ? [await viewKey(own, deps)] : [] };
    },
  );

  app.get<{ Params: HashParams }>(
    '/keys/:hash',
    {
      schema: {
        summary: 'Show one of your keys',
        description:
          'A key of your account; to a key with a spending limit, an expiry or a list of services, itself alone.',
        tags: ['Account'],
        params: hashParams,
        response: { 200: oneKeySchema },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      const { hash } = request.params;
      const record =
        caller.key?.hash === hash || !(await isRestricted(keys, caller.key)) ? await keys.find(hash) : null;
      if (record?.account !== caller.account) throw keyNotFound();
      return { data: await viewKey(record, deps) };
    },
  );

  app.post<{ Body: KeyBody | undefined }>(
    '/keys',
    {
      schema: {
        summary: 'Create a key',
        description:
          'A new key for your account, with a spending limit, an expiry and a list of services where you want them. A wallet signs in for this with a nonce of `/auth/nonce`.',
        tags: ['Account'],
        body: {
          type: ['object', 'null'],
          additionalProperties: false,
          properties: keyBodyProperties,
          examples: [{ label: 'my agent', limit: 5, limit_reset: 'monthly' }],
        },
        response: { 201: newKeySchema },
      },
    },
    async (request, reply) => {
      const { caller } = admissionOf(request);
      await requireFullRights(keys, caller, OF_KEYS);
      // A body that is refused must not cost the nonce.
      parseKeyBody(request.body ?? {}, now());
      await requireFreshSignature(caller, deps.nonces);
      const kind = caller.key?.development ? 'development' : 'live';
      return reply.code(201).send(await createKeyFor(deps, caller.account, kind, request.body));
    },
  );

  app.patch<{ Params: HashParams; Body: KeyBody | undefined }>(
    '/keys/:hash',
    {
      schema: {
        summary: 'Change a key',
        description:
          'Changes what is given and leaves the rest. A disabled key is refused until it is enabled again. A wallet signs in with a nonce of `/auth/nonce` for anything but a new name or a stop.',
        tags: ['Account'],
        params: hashParams,
        body: keyChangesSchema,
        response: { 200: oneKeySchema },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      await requireFullRights(keys, caller, OF_KEYS);
      const changes = parseKeyBody(request.body ?? {}, now());
      if (mayLoosen(changes)) await requireFreshSignature(caller, deps.nonces);
      const record = await keys.update(caller.account, request.params.hash, changes);
      if (!record) throw keyNotFound();
      return { data: await viewKey(record, deps) };
    },
  );

  app.delete<{ Params: HashParams }>(
    '/keys/:hash',
    {
      schema: {
        summary: 'Delete a key',
        description:
          'Revokes the key for ever: at once here, within a second on every other gateway. Any key may delete itself.',
        tags: ['Account'],
        params: hashParams,
        response: { 200: deletedKeySchema },
      },
    },
    async (request) => {
      const { caller } = admissionOf(request);
      const { hash } = request.params;
      if (caller.key?.hash !== hash) await requireFullRights(keys, caller, OF_KEYS);
      if (!(await keys.delete(caller.account, hash))) throw keyNotFound();
      return { deleted: true, data: { hash, deleted: true } };
    },
  );

  app.get(
    '/key',
    {
      schema: {
        summary: 'Show the key in use',
        description: 'The key that this request is made with: its limits, what it has spent, and its rate.',
        tags: ['Account'],
        response: {
          200: {
            type: 'object',
            required: ['data'],
            properties: {
              data: {
                ...keySchema,
                properties: {
                  ...keySchema.properties,
                  rate_limit: {
                    type: 'object',
                    required: ['requests', 'tokens', 'interval', 'note'],
                    properties: {
                      requests: {
                        type: 'integer',
                        description: 'Requests in an interval. A burst may go beyond it for a moment.',
                      },
                      tokens: { type: 'integer' },
                      interval: { type: 'string' },
                      note: { type: 'string' },
                    },
                  },
                },
              },
            },
          },
        },
      },
    },
    async (request) => {
      const { caller, rate } = admissionOf(request);
      if (caller.key === null)
        throw new GatewayError(
          'not_found',
          'This request came without an API key; /api/v1/keys lists those of its account',
        );
      const record = await keys.find(caller.key.hash);
      if (!record) throw keyNotFound();
      return {
        data: {
          ...(await viewKey(record, deps)),
          rate_limit: {
            requests: rate.requests.perMinute,
            tokens: rate.tokens.perMinute,
            interval: '60s',
            note: RATE_NOTE,
          },
        },
      };
    },
  );
}

/** The keys of an account as answers show them. */
export async function viewKeys(deps: Omit<KeysDeps, 'offers'>, account: string, page: Page): Promise<KeyView[]> {
  const records = await deps.keys.list(account, page);
  return Promise.all(records.map((record) => viewKey(record, deps)));
}

/**
 * Makes a key from a request's body and shows it. Throws GatewayError `invalid_request`, and `unprocessable` when
 * the account has too many.
 */
export async function createKeyFor(
  deps: KeysDeps,
  account: string,
  kind: NewKeyFields['kind'],
  body: KeyBody | undefined,
): Promise<{ readonly key: string; readonly data: KeyView; readonly warnings?: readonly string[] }> {
  const { keys, offers } = deps;
  const made = await keys.create({ label: 'key', ...parseKeyBody(body ?? {}, deps.now()), account, kind });
  if (!made) throw new GatewayError('unprocessable', 'This account has too many keys: delete those that are not used');
  const missing = (made.record.allowedServices ?? []).filter((service) => !offers(service));
  const warnings = missing.map((service) => `Nothing is offered here as ${service} at the moment: check the name`);
  return { key: made.text, data: await viewKey(made.record, deps), ...(warnings.length > 0 ? { warnings } : {}) };
}

/** Other gateways' clients need one. */
const RATE_NOTE = 'The steady rate. The headers x-ratelimit-* of every answer tell what is left.';

/** The same for a key that does not exist and for one of another account. */
export function keyNotFound(): GatewayError {
  return new GatewayError('not_found', 'Key not found', { param: 'hash' });
}

/** Whether a change can make a key able to do more than it was: as good as making one, whatever header it came with. */
function mayLoosen({ label: _label, disabled, ...others }: KeyChanges): boolean {
  return disabled === false || Object.keys(others).length > 0;
}

const OF_KEYS = { what: 'create, change or delete keys', instead: 'ask the operator for one' };
