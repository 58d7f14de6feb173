import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type Config, createHttpSink, GatewayError, toGatewayError } from '#gateway';
import { DESCRIPTION } from './described-route.ts';
import type { Context, Dispatch } from './dispatch.ts';
import type { Entry } from './entry.ts';
import { CODE, toRpcFault } from './errors-rpc.ts';
import { carriedOf, hasCredential } from './headers.ts';
import { createAsk } from './inner-request.ts';
import type { HasRoute } from './method.ts';
import { methodsOf } from './method-table.ts';
import { offerMethods, type Offered } from './offer-methods.ts';
import { errorOf, namelessError, replyText } from './outcome.ts';
import { readBody } from './read-body.ts';
import { refused, runBatch } from './run-batch.ts';

export interface RpcDeps {
  /** Of the server that has all doors. */
  readonly inject: FastifyInstance['inject'];
  readonly hasRoute: HasRoute;
  readonly config: Pick<Config, 'publicUrl'> & {
    readonly limits: Pick<Config['limits'], 'chatBodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
    readonly upstream: Pick<Config['upstream'], 'replyBytesMax'>;
  };
  readonly version: string;
  readonly onError: (error: unknown, request: { readonly id: string; readonly method: string; readonly url: string }) => void;
}

/** What is written to the client; no text: HTTP 204. */
interface Reply {
  readonly text: string | null;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

const REQUEST_ID_CHARS_MAX = 128;

/**
 * `POST /rpc`: every door of this gateway by JSON-RPC 2.0. Each entry becomes one request to the door itself, which authenticates, counts, bills and answers it;
 * nothing of that is done here. Register it under `/api/v1`, once.
 */
export function rpcRoutes(deps: RpcDeps): FastifyPluginAsync {
  const { limits, upstream, publicUrl } = deps.config;
  const ask = createAsk(deps.inject);

  return async (app) => {
    // What an entry must be, it is told in the words of JSON-RPC.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    const keep = { parseAs: 'buffer', bodyLimit: limits.chatBodyBytesMax } as const;
    app.addContentTypeParser(/^application\/(?:[\w.-]+\+)?json(?:;|$)/i, keep, (_request, body, done) => done(null, body));

    app.setErrorHandler((error, request, reply) => {
      const known = toGatewayError(error);
      if (known.code === 'internal') deps.onError(known.cause ?? error, request);
      const { error: fault, status, headers } = toRpcFault(known);
      // What is wrong with a body that was not read is no parameter's fault.
      const code = known.code === 'invalid_request' ? CODE.invalidRequest : fault.code;
      void reply.code(status).headers(headers).type('application/json').send(namelessError(code, fault.message));
    });

    // All routes are there once requests come.
    let offered: Offered | null = null;
    const offer = () => offerMethods({ ask, methods: methodsOf(deps.hasRoute), version: deps.version, url: `${publicUrl ?? ''}${app.prefix}/rpc` });

    async function answer(request: FastifyRequest, gone: AbortSignal): Promise<Reply> {
      const encoding = request.headers['content-encoding'];
      if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
        return plain(namelessError(CODE.invalidRequest, 'Send the body uncompressed, without content-encoding'));
      const body = await readBody((request.body as Buffer | undefined) ?? NOTHING, limits);
      if (body.kind === 'refused') return plain(namelessError(body.error.code, body.error.message));
      const { dispatch, isClosed } = (offered ??= offer());
      const { 'idempotency-key': key } = request.headers;
      const context: Context = {
        carried: carriedOf(request.raw.rawHeaders),
        address: request.ip,
        requestId: request.id,
        gone,
        idempotencyKey: typeof key === 'string' ? key : null,
        report: (error) => deps.onError(error, request),
      };
      if (body.kind === 'single') return answerOne(body.entry, context, dispatch);

      const { entries } = body;
      if (context.idempotencyKey !== null)
        return plain(
          namelessError(
            CODE.invalidRequest,
            'An Idempotency-Key is of one call: in a batch, give each entry its own in params._meta["tollgate/idempotency-key"]',
          ),
        );
      // One small request of a stranger must not become 50 lookups of a credential that is not there.
      if (!hasCredential(context.carried) && entries.some((entry) => entry.kind === 'call' && isClosed(entry.message.method))) {
        const outcome = errorOf(toRpcFault(NO_CREDENTIAL));
        return { text: replyText('null', outcome), status: outcome.status, headers: outcome.headers };
      }
      const replies = await runBatch(entries, {
        replyCharsMax: upstream.replyBytesMax,
        gone,
        run: (message, place) => dispatch(message, { ...context, requestId: idOf(request.id, place) }),
      });
      return replies.length === 0 ? SILENCE : plain(`[${replies.join(',')}]`);
    }

    app.post('/rpc', { bodyLimit: limits.chatBodyBytesMax, schema: DESCRIPTION }, async (request, reply) => {
      const gone = new AbortController();
      const sink = createHttpSink(reply, limits.clientStallMs, () => gone.abort());
      const { text, status, headers } = await answer(request, gone.signal);
      if (!sink.closed) {
        const bytes = text === null ? NOTHING : Buffer.from(text);
        sink.head(status, text === null ? {} : { ...headers, 'content-type': 'application/json', 'content-length': bytes.byteLength });
        sink.end(bytes);
      }
      // The client left: there is nobody to answer.
      if (!reply.sent) reply.hijack();
    });
  };
}

async function answerOne(entry: Entry, context: Context, dispatch: Dispatch): Promise<Reply> {
  if (entry.kind === 'silent') return SILENCE;
  if (entry.kind === 'refused') return plain(replyText(entry.idText, refused(entry)));
  const outcome = await dispatch(entry.message, context);
  return { text: replyText(entry.message.idText, outcome), status: outcome.status, headers: outcome.headers };
}

const plain = (text: string): Reply => ({ text, status: 200, headers: {} });
const SILENCE: Reply = { text: null, status: 204, headers: {} };
const NOTHING = Buffer.alloc(0);

const NO_CREDENTIAL = new GatewayError(
  'unauthorized',
  'This batch calls for an account: send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…", or sign in with a wallet: /api/v1/auth/nonce shows how',
  { headers: { 'www-authenticate': 'Bearer, SIWx' } },
);

/** The id of an entry's own request, in the log and for its provider. */
function idOf(requestId: string, place: number): string {
  const suffix = `-${place}`;
  return requestId.slice(0, REQUEST_ID_CHARS_MAX - suffix.length) + suffix;
}
