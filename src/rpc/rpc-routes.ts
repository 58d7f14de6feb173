import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import { createHttpSink, GatewayError } from '#wire';
import type { Config } from '#config';
import { createReplyMemory, type Pipeline, type ReplyHold, toGatewayError } from '#gateway';
import { DESCRIPTION } from './described-route.ts';
import type { Context } from './dispatch.ts';
import { CODE, toRpcFault } from './errors-rpc.ts';
import { carriedOf, hasCredential } from './headers.ts';
import { createAsk } from './inner-request.ts';
import { createKeptReplies } from './kept-replies.ts';
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
  readonly pipeline: Pick<Pipeline, 'visitor' | 'count'>;
  readonly config: Pick<Config, 'publicUrl'> & {
    readonly limits: Pick<Config['limits'], 'chatBodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
    readonly upstream: Pick<Config['upstream'], 'replyBytesMax'>;
  };
  readonly version: string;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** What is written to the client, one piece after the other; none: HTTP 204. */
interface Reply {
  readonly pieces: readonly Buffer[];
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

const REQUEST_ID_CHARS_MAX = 128;
/**
 * What replies of this endpoint may take together until clients have taken them; a quarter of it for one account,
 * or one network of strangers.
 */
const REPLIES_BYTES_MAX = 64 * 1024 * 1024;

/**
 * `POST /rpc`: every door of this gateway by JSON-RPC 2.0. Each entry becomes one request to the door itself, which
 * authenticates, counts, bills and answers it. Here only those are counted that their door answers to everybody.
 * Register it under `/api/v1`, once.
 */
export function rpcRoutes(deps: RpcDeps): FastifyPluginAsync {
  const { limits, upstream, publicUrl } = deps.config;
  const ask = createAsk(deps.inject);
  const memory = createReplyMemory({ repliesBytesMax: REPLIES_BYTES_MAX, replyBytesMax: upstream.replyBytesMax });

  return async (app) => {
    // What an entry must be, it is told in the words of JSON-RPC.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    const keep = { parseAs: 'buffer', bodyLimit: limits.chatBodyBytesMax } as const;
    app.addContentTypeParser(/^application\/(?:[\w.-]+\+)?json(?:;|$)/i, keep, (_request, body, done) =>
      done(null, body),
    );

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
    const offer = () =>
      offerMethods({
        ask,
        methods: methodsOf(deps.hasRoute),
        version: deps.version,
        url: `${publicUrl ?? ''}${app.prefix}/rpc`,
      });

    async function answer(
      request: FastifyRequest,
      gone: AbortSignal,
      holds: (hold: ReplyHold) => void,
    ): Promise<Reply> {
      const encoding = request.headers['content-encoding'];
      if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
        return plain(namelessError(CODE.invalidRequest, 'Send the body uncompressed, without content-encoding'));
      const body = await readBody((request.body as Buffer | undefined) ?? NOTHING, limits);
      if (body.kind === 'refused') return plain(namelessError(body.error.code, body.error.message));
      const { dispatch, isClosed, isBilled } = (offered ??= offer());
      const visitor = await deps.pipeline.visitor(request.headers, request.ip);
      if (gone.aborted) return SILENCE;
      const hold = memory.open(visitor.account, null);
      holds(hold);
      const { 'idempotency-key': key } = request.headers;
      const context: Context = {
        carried: carriedOf(request.raw.rawHeaders),
        address: request.ip,
        requestId: request.id,
        gone,
        idempotencyKey: typeof key === 'string' ? key : null,
        count: () => deps.pipeline.count(visitor, 1),
        report: (error) => deps.onError(error, request),
      };
      if (body.kind === 'single') {
        const { entry } = body;
        if (entry.kind === 'silent') return SILENCE;
        if (entry.kind === 'refused') return plain(replyText(entry.idText, refused(entry)));
        const { idText, method } = entry.message;
        const run = () => dispatch(entry.message, context);
        const { bytes, status, headers } = await createKeptReplies(hold, Infinity).replyTo({
          idText,
          billed: isBilled(method),
          run,
        });
        return { pieces: [bytes], status, headers };
      }

      const { entries } = body;
      if (context.idempotencyKey !== null)
        return plain(
          namelessError(
            CODE.invalidRequest,
            'An Idempotency-Key is of one call: in a batch, give each entry its own in params._meta["tollgate/idempotency-key"]',
          ),
        );
      // One small request of a stranger must not become 50 lookups of a credential that is not there.
      if (
        !hasCredential(context.carried) &&
        entries.some((entry) => entry.kind === 'call' && isClosed(entry.message.method))
      ) {
        const outcome = errorOf(toRpcFault(NO_CREDENTIAL));
        return { pieces: [Buffer.from(replyText('null', outcome))], status: outcome.status, headers: outcome.headers };
      }
      const replies = await runBatch(entries, {
        kept: createKeptReplies(hold, upstream.replyBytesMax),
        gone,
        isBilled,
        run: (message, place) => dispatch(message, { ...context, requestId: idOf(request.id, place) }),
      });
      if (replies.length === 0) return SILENCE;
      return {
        pieces: [OPEN, ...replies.flatMap((reply, at) => (at === 0 ? [reply] : [COMMA, reply])), CLOSE],
        status: 200,
        headers: {},
      };
    }

    const refusal = ({ message, headers }: GatewayError) => ({
      status: 405,
      headers: headers ?? {},
      text: namelessError(CODE.invalidRequest, message),
    });
    app.post(
      '/rpc',
      { bodyLimit: limits.chatBodyBytesMax, schema: DESCRIPTION, config: { refusal } },
      async (request, reply) => {
        const gone = new AbortController();
        const sink = createHttpSink(reply, limits.clientStallMs, () => gone.abort());
        let hold: ReplyHold | null = null;
        reply.raw.on('close', () => hold?.release());
        const { pieces, status, headers } = await answer(request, gone.signal, (held) => (hold = held));
        if (!sink.closed) {
          const length = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
          sink.head(
            status,
            pieces.length === 0 ? {} : { ...headers, 'content-type': 'application/json', 'content-length': length },
          );
          for (const piece of pieces.slice(0, -1)) sink.write(piece);
          sink.end(pieces.at(-1) ?? NOTHING);
        }
        // The client left: there is nobody to answer.
        if (!reply.sent) reply.hijack();
      },
    );
  };
}

const plain = (text: string): Reply => ({ pieces: [Buffer.from(text)], status: 200, headers: {} });
const SILENCE: Reply = { pieces: [], status: 204, headers: {} };
const [OPEN, COMMA, CLOSE] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')];
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
