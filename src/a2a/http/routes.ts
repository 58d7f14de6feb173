import type { FastifyPluginAsync } from 'fastify';
import { printable, type GatewayError } from '#wire';
import { PARSED_JSON, type Pipeline, readBytes, toGatewayError } from '#gateway';
import { requireAdmission } from '#auth';
import { addressOf, createAnswerRequest, readVersionOf, type AnswerRequestDeps } from './answer-request.ts';
import { readAddress } from './address.ts';
import { describeEndpoint } from './described-endpoint.ts';
import { A2aError, restMediaType, toA2aError } from '../wire/errors.ts';

export interface A2aRoutesDeps extends AnswerRequestDeps {
  readonly admit: Pipeline['admit'];
}

/**
 * The routes of `/a2a` (all agents) and `/a2a/{service}`: both versions by JSON-RPC and HTTP+JSON, and the bare
 * message. Register them at the root and under `/api/v1`.
 */
export function a2aRoutes(deps: A2aRoutesDeps): FastifyPluginAsync {
  const { bodyBytesMax } = deps.limits;
  return async (app) => {
    const answer = createAnswerRequest(deps, app.prefix, requireAdmission(app, deps.admit, true, false));
    // Fastify's validation is off, because the protocol has its own errors for invalid messages.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(['application/json', 'application/a2a+json'], readBytes(PARSED_JSON));

    app.setErrorHandler((thrown, request, reply) => {
      const { version = '1.0' } = readVersionOf(request);
      const binding = addressOf(request, app.prefix, version, deps.isService).kind === 'rpc' ? 'jsonrpc' : 'rest';
      const error =
        (thrown as { readonly code?: unknown }).code === NO_PARSER
          ? otherContentType(request.headers['content-type'])
          : thrown;
      const { status, headers, text } = toA2aError(error, { version, binding });
      if (status >= 500) deps.onError(error, request);
      const challenge = deps.challenge(request, toGatewayError(error));
      void reply
        .code(status)
        .headers(challenge === null ? headers : { ...headers, 'www-authenticate': challenge })
        .type(binding === 'rest' ? restMediaType(version, request.headers.accept) : 'application/json')
        .send(text);
    });

    const refusal = (error: GatewayError) => toA2aError(error, { version: '1.0', binding: 'rest' });
    for (const path of ['/a2a', '/a2a/*'] as const) {
      const all = path === '/a2a';
      const described = describeEndpoint(all, app.prefix !== '');
      // The address of all agents takes only POST. Its other routes say so.
      const config = all ? ({ refusesMethod: true } as const) : {};
      const methodsAt = (path: string) => methodsOf(path.slice(`${app.prefix}/a2a`.length), deps.isService);
      app.post(
        path,
        { bodyLimit: bodyBytesMax, schema: described.post, config: { refusal, ...(all ? {} : { methodsAt }) } },
        answer,
      );
      app.get(path, { schema: described.get, exposeHeadRoute: false, config }, answer);
      app.delete(path, { schema: described.get, config }, answer);
    }
  };
}

/** The methods of an address below `/a2a`. The address of an agent takes messages, and its routes have their own. */
function methodsOf(path: string, isService: (name: string) => boolean): readonly string[] {
  const address = readAddress('OPTIONS', path, null, isService);
  return address.kind === 'verb' ? address.allowed : ['POST'];
}

const NO_PARSER = 'FST_ERR_CTP_INVALID_MEDIA_TYPE';

const otherContentType = (type: string | undefined) =>
  new A2aError(
    'ContentTypeNotSupported',
    `The body must have the Content-Type application/json or application/a2a+json, not ${printable(type ?? 'none')}`,
    { param: 'Content-Type' },
  );
