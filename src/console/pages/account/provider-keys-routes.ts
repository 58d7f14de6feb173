import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import type { ProviderKeys } from '#accounts';
import { DOCUMENTED } from '#http';
import type { Pipeline } from '#call';
import { requireAdmission, requireFreshSignature, requireFullRights, type KeyStore, type Nonces } from '#auth';
import type { Offer } from '#catalog';
import { dataOf, objectOf, titled } from '../route-schemas.ts';

interface ProviderKeysDeps {
  readonly admit: Pipeline['admit'];
  readonly keys: Pick<KeyStore, 'find'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly providerKeys: ProviderKeys;
  readonly catalogued: () => readonly Offer[];
}

interface KeyBody {
  readonly provider: string;
  readonly key: string;
}

const tags = ['Account'];
const OF_KEYS = { what: "change the account's keys at providers", instead: 'use a key of the account' };

const storedSchema = titled(
  'ProviderKey',
  objectOf({
    provider: { type: 'string', description: 'Id of the provider.' },
    provider_name: { type: ['string', 'null'], description: 'null if the gateway does not list it any more.' },
    address: { type: 'string', description: 'The address that the key is sent to, and nowhere else.' },
    last_four: { type: 'string', description: 'The last four characters of the key.' },
    created_at: { type: 'string' },
    used: { type: 'boolean', description: 'Whether the gateway has a model at this address that takes such keys.' },
  }),
);
const allSchema = dataOf({ type: 'array', items: storedSchema, title: 'ProviderKeys' });

const params = {
  type: 'object',
  required: ['provider'],
  properties: {
    provider: { type: 'string', minLength: 1, maxLength: 128, description: 'Id or name of the provider.' },
  },
} as const;

const KEY = /^[!-~]{8,512}$/;

const bodySchema = {
  title: 'ProviderKeyRequest',
  type: 'object',
  required: ['provider', 'key'],
  additionalProperties: false,
  properties: {
    provider: params.properties.provider,
    key: {
      type: 'string',
      // Checked in code, because the error of a pattern repeats the value.
      [DOCUMENTED]: { pattern: KEY.source },
      description: 'Your key at the provider. It is stored encrypted and never shown again.',
    },
  },
  examples: [{ provider: 'OpenAI', key: 'sk-proj-0123456789' }],
} as const;

export function providerKeysRoutes(deps: ProviderKeysDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    const schema = {
      summary: 'List your keys at providers',
      description: 'Calls of models at these providers go out with your key, and the provider charges you for them.',
      tags,
      response: { 200: allSchema },
    };
    app.get('/provider-keys', { config: { actsAs: 'admin' }, schema }, async (request) => {
      const { caller } = admissionOf(request);
      await requireFullRights(deps.keys, caller, { ...OF_KEYS, what: "see the account's keys at providers" });
      return { data: await view(deps, caller.account) };
    });

    const stored = {
      summary: 'Store a key at a provider',
      description:
        'Replaces an earlier one. The key is sent only to the addresses at which the gateway reaches this provider now. A wallet signs in for this with a nonce of `/auth/nonce`.',
      tags,
      body: bodySchema,
      response: { 201: allSchema },
    };
    app.post<{ Body: KeyBody }>(
      '/provider-keys',
      { config: { actsAs: 'admin' }, schema: stored },
      async (request, reply) => {
        const { caller } = admissionOf(request);
        await requireFullRights(deps.keys, caller, OF_KEYS);
        const { provider, key } = request.body;
        if (!KEY.test(key))
          throw new GatewayError('invalid_request', 'key must be 8 to 512 printable characters without spaces', {
            param: 'key',
          });
        const { id, addresses } = takerOf(deps, provider);
        await requireFreshSignature(caller, deps.nonces);
        await deps.providerKeys.put(caller.account, id, addresses, key);
        return reply.code(201).send({ data: await view(deps, caller.account) });
      },
    );

    const deleted = {
      summary: 'Delete a key at a provider',
      description: 'At once on this gateway, within ten seconds on every other gateway. Calls that run end with it.',
      tags,
      params,
      response: { 200: dataOf(titled('DeletedProviderKey', objectOf({ deleted: { type: 'boolean' } }))) },
    };
    app.delete<{ Params: { readonly provider: string } }>(
      '/provider-keys/:provider',
      { config: { actsAs: 'admin' }, schema: deleted },
      async (request) => {
        const { caller } = admissionOf(request);
        await requireFullRights(deps.keys, caller, OF_KEYS);
        const providerName = request.params.provider;
        const id =
          deps.catalogued().find(({ provider }) => isProvider(provider, providerName))?.provider.id ?? providerName;
        if (!(await deps.providerKeys.delete(caller.account, id)))
          throw new GatewayError('not_found', 'There is no key of yours at this provider', { param: 'provider' });
        return { data: { deleted: true } };
      },
    );
  };
}

/** The places at which the gateway's own file lets consumers use their keys. */
const takers = (deps: ProviderKeysDeps) =>
  deps
    .catalogued()
    .flatMap(({ provider, endpoint }) =>
      endpoint.kind === 'direct' && endpoint.ownKeys === true ? [{ provider, address: endpoint.baseUrl }] : [],
    );

const isProvider = ({ id, name }: Offer['provider'], key: string): boolean =>
  id === key || name.toLowerCase() === key.toLowerCase();

function takerOf(deps: ProviderKeysDeps, key: string): { readonly id: string; readonly addresses: readonly string[] } {
  const all = takers(deps);
  const matches = all.filter(({ provider }) => isProvider(provider, key));
  const [first] = matches;
  if (first === undefined) {
    const names = [...new Set(all.map(({ provider }) => provider.name))].slice(0, 20);
    throw new GatewayError(
      'not_found',
      names.length === 0
        ? 'No provider of this gateway takes keys of consumers'
        : `This provider takes no keys of consumers. These do: ${names.join(', ')}`,
      { param: 'provider' },
    );
  }
  return { id: first.provider.id, addresses: [...new Set(matches.map(({ address }) => address))] };
}

async function view(deps: ProviderKeysDeps, account: string) {
  const all = takers(deps);
  const names = new Map(deps.catalogued().map(({ provider: { id, name } }) => [id, name]));
  return (await deps.providerKeys.list(account)).map(({ provider, address, lastFour, createdAt }) => ({
    provider,
    provider_name: names.get(provider) ?? null,
    address,
    last_four: lastFour,
    created_at: new Date(createdAt).toISOString(),
    used: all.some((taker) => taker.provider.id === provider && taker.address === address),
  }));
}
