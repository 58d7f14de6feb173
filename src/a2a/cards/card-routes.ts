import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { Caller } from '#accounts';
import { authorise, type Pipeline } from '#call';
import type { Catalog } from '#catalog';
import { addressOf, hasTagged } from '#http';
import { readVersion, VERSION_HEADER, versionQuery } from '../wire/protocol.ts';
import type { BridgedAgent, Cards } from './cards.ts';
import { NO_ORIGIN, type CardOrigin, type CardPage } from './card-pages.ts';

interface CardRoutesDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'version'>;
  readonly cards: Cards;
  /** Finds the model or tool that is called as an agent by this name; null for any other name. */
  readonly bridged: (service: string) => Promise<BridgedAgent | null>;
  readonly namesBelow: (prefix: string) => readonly string[];
  /** Finds who asks: a key that may not call everything sees only the cards of what it may call. */
  readonly visitor: Pipeline['visitor'];
  readonly origin: (request: FastifyRequest) => CardOrigin | null;
}

const CARD_FILES = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;
const CONSTRAINT = 'agentCard';

const TAGS = ['Agents'];
const ABOUT =
  'For everybody. With `A2A-Version: 1.0` in the form of that version; without, in one that clients of 0.3 and of 1.0 read. Signed with a key of ' +
  '`/.well-known/jwks.json` (JWS over RFC 8785).';

const CARD = {
  description: 'The card.',
  type: 'object',
  required: ['name', 'description', 'skills'],
  properties: {
    name: { type: 'string' },
    description: { type: 'string' },
    skills: { type: 'array', items: { type: 'object', additionalProperties: true } },
  },
  additionalProperties: true,
} as const;

/**
 * Adds the routes of agent cards, which need no credential: the gateway's own card at the root, and the cards of
 * services below `/a2a/{service}` and `/api/v1/a2a/{service}`, at the card paths of both versions. Call it on the root
 * instance, because the routes of the A2A route use the same wildcard and require a credential.
 */
export function addCardRoutes(
  app: FastifyInstance,
  { catalog, cards, origin, visitor, bridged, namesBelow }: CardRoutesDeps,
): void {
  // The name of a service may contain slashes, so a route cannot match the end of the path. A constraint does it.
  if (!app.hasConstraintStrategy(CONSTRAINT)) app.addConstraintStrategy(cardConstraint());

  void app.register(async (scope) => {
    const originOf = (request: FastifyRequest): CardOrigin => {
      const cardOrigin = origin(request);
      if (!cardOrigin) throw new GatewayError('invalid_request', NO_ORIGIN, { param: 'Host' });
      return cardOrigin;
    };

    const visitorOf = (request: FastifyRequest) => visitor(request.headers, addressOf(request));
    const own = async (request: FastifyRequest) => {
      const { key } = await visitorOf(request);
      return cards.own(catalog, key?.access ?? null, versionOf(request), originOf(request));
    };

    for (const [index, url] of [...CARD_FILES, ...CARD_FILES.map((file) => `/api/v1${file}`)].entries()) {
      scope.route({
        method: ['GET', 'HEAD'],
        url,
        config: { anyPage: true },
        schema: {
          tags: TAGS,
          security: [],
          summary: 'Show the agent card of this gateway',
          description: ABOUT,
          hide: index > 0,
          response: { 200: CARD },
        },
        handler: async (request, reply) => send(request, reply, await own(request)),
      });
    }

    const cardOf = async (
      service: string,
      request: Parameters<Cards['bridged']>[0],
      caller: Pick<Caller, 'key'>,
    ): Promise<CardPage> => {
      try {
        const { service: name, offers } = catalog.resolve(service, 'agent');
        authorise(caller, 'agent', name);
        return await cards.card({ ...request, offers });
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'not_found') throw error;
        const agent = await bridged(service);
        if (agent !== null) {
          const name = agent.offers[0]!.service;
          authorise(
            caller,
            agent.primitive,
            name,
            agent.primitive === 'tool' ? agent.name.slice(name.length + 1) : null,
          );
          return cards.bridged(request, agent);
        }
        throw new GatewayError('not_found', `${error.message}${hintAt(request.origin.url, namesBelow(`${service}/`))}`);
      }
    };

    for (const prefix of ['', '/api/v1']) {
      scope.route<{ Params: { readonly '*': string } }>({
        method: ['GET', 'HEAD'],
        url: `${prefix}/a2a/*`,
        constraints: { [CONSTRAINT]: true },
        config: { anyPage: true },
        schema: { hide: true },
        handler: async (request, reply) => {
          const path = request.params['*'];
          const service = path.slice(0, Math.max(0, path.lastIndexOf('/.well-known/')));
          if (service === '') return send(request, reply, await own(request));
          return send(
            request,
            reply,
            await cardOf(
              service,
              { service, version: versionOf(request), origin: originOf(request) },
              await visitorOf(request),
            ),
          );
        },
      });
    }
  });
}

/**
 * A hint for an address that has agents below it. Without a trailing slash, clients look for the card beside the
 * address and not below it.
 */
function hintAt(origin: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  return `. There is ${names.join(', ')}: end the address with a slash, such as ${origin}/a2a/${names[0]}/, and clients find the card below it`;
}

/** The version of the card. For an unknown version it is 0.3, because that card lists the known versions. */
function versionOf(request: FastifyRequest) {
  return readVersion(request.headers[VERSION_HEADER], versionQuery(request)).version ?? '0.3';
}

function send(request: FastifyRequest, reply: FastifyReply, { body, etag, modifiedAt }: CardPage): FastifyReply {
  if (modifiedAt !== null) void reply.header('last-modified', new Date(modifiedAt).toUTCString());
  void reply.headers({
    etag,
    vary: 'A2A-Version, Authorization, x-api-key',
    'cache-control': 'public, max-age=300',
    'x-content-type-options': 'nosniff',
  });
  if (hasTagged(request, etag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(body);
}

/** A constraint for routes of cards: it matches each path that ends with a card file. */
function cardConstraint(): Parameters<FastifyInstance['addConstraintStrategy']>[0] {
  return {
    name: CONSTRAINT,
    storage: () => {
      const handlers = new Map<unknown, never>();
      return {
        get: (value: unknown) => handlers.get(value) ?? null,
        set: (value: unknown, handler: never) => void handlers.set(value, handler),
      };
    },
    validate: (value: unknown) => {
      if (value !== true) throw new TypeError(`${CONSTRAINT} is true or absent`);
    },
    deriveConstraint: ({ url = '' }: { readonly url?: string | undefined }) => {
      const query = url.indexOf('?');
      const end = query === -1 ? url.length : query;
      return CARD_FILES.some((file) => url.endsWith(file, end)) || undefined;
    },
  } as Parameters<FastifyInstance['addConstraintStrategy']>[0];
}
