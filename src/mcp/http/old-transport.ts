import type { FastifyPluginAsync } from 'fastify';
import { errorText } from '#wire';
import { ERROR } from '../wire/revisions.ts';

const SSE_ADDRESS =
  'This gateway does not support HTTP+SSE, the transport of MCP 2024-11-05. Connect to /mcp, or /mcp/<service>, by Streamable HTTP (http or streamable-http in the settings of most clients)';

/**
 * `/sse`, the usual address of the old transport. Answers 404, and says which address to use instead. Register it next
 * to `/mcp`.
 */
export const oldTransport: FastifyPluginAsync = async (app) => {
  app.route({
    method: ['GET', 'HEAD', 'POST'],
    url: '/sse',
    schema: { hide: true },
    exposeHeadRoute: false,
    // An early hook, because the body is not read and may be of any type.
    onRequest: async (_request, reply) => {
      await reply
        .code(404)
        .type('application/json')
        .send(errorText('null', { code: ERROR.server, message: SSE_ADDRESS }));
    },
    handler: () => {},
  });
};
