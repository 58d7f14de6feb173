import type { FastifyPluginAsync } from 'fastify';
import { METADATA_PATH, pathOf, type Resources } from './resources.ts';

interface ResourceDeps {
  readonly issuer: string;
  readonly resources: Pick<Resources, 'resourceOf'>;
  readonly scopes: readonly string[];
}

const text = (description: string) => ({ type: 'string', description }) as const;
const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description }) as const;

const answer = {
  type: 'object',
  required: ['resource', 'authorization_servers', 'bearer_methods_supported', 'resource_name'],
  properties: {
    resource: text('The resource to request a token for'),
    authorization_servers: texts('Issuers of accepted tokens'),
    scopes_supported: texts('Scopes that a token may have'),
    bearer_methods_supported: texts('How the token is sent: always in a header'),
    resource_name: text('For people'),
  },
} as const;

/**
 * `GET /.well-known/oauth-protected-resource` (RFC 9728), also with the path of an MCP or A2A endpoint appended.
 * Public. Register it without a prefix.
 */
export function resourceRoutes({ issuer, resources, scopes }: ResourceDeps): FastifyPluginAsync {
  return async (app) => {
    for (const path of [METADATA_PATH, `${METADATA_PATH}/*`]) {
      app.get(
        path,
        {
          schema: {
            summary: 'Show whose access tokens are accepted',
            description:
              'Metadata of a protected resource (RFC 9728): this gateway, or the endpoint of a path such as `/mcp` or `/a2a` at the end of the address. It exists only if the operator has set an issuer.',
            tags: ['Account'],
            security: [],
            hide: path !== METADATA_PATH,
            response: { 200: answer },
          },
        },
        (request, reply) => {
          const resource = resources.resourceOf(request, pathOf(request).slice(METADATA_PATH.length));
          if (resource === null) return reply.callNotFound();
          // Browser clients of other origins may read it, because it has no secrets.
          return reply.header('access-control-allow-origin', '*').send({
            resource,
            authorization_servers: [issuer],
            ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
            bearer_methods_supported: ['header'],
            resource_name: 'tollgate',
          });
        },
      );
    }
  };
}
