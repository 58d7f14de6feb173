import { BOUNDS, foreignObject, isObject, UpstreamFailure, type JsonObject } from '#wire';
import { oneLine, type Scrub, scrubNothing, scrubOf } from '#security';
import { FormBody } from '#http';
import { batchPriceOf, type DirectEndpoint, type Offer } from '#catalog';
import type { Upstream, UpstreamReply, UpstreamRequest } from '#call';
import { type ProviderApi, ProviderFailure, type ProviderPlace, type RemoteBatch } from '#batch-jobs';

interface ProviderBatchApiOptions {
  readonly upstream: Pick<Upstream, 'send'>;
  readonly offerOf: (id: string) => Offer | undefined;
  /** The longest time of a request and its answer, unless a file is read. In milliseconds, default one minute. */
  readonly askMs?: number;
}

interface BatchApiRequest
  extends Pick<UpstreamRequest, 'method' | 'path'>, Partial<Pick<UpstreamRequest, 'headers' | 'body'>> {
  /** It begins something that has the price of batches. What is under way goes on without such a price. */
  readonly begins?: boolean;
}
/** Bytes of an answer that is no file. */
const ANSWER_BYTES_MAX = BOUNDS.providerBatch.bytesMax;
const PAGE = 100;
/** Pages of a list that are read to find a batch. */
const PAGES_MAX = 50;
const TEXT_MAX = 300;
const FAULTS_MAX = 10;
const MS = 1_000;
const ASK_MS = 60_000;
const ERROR = 400;

/** Batches of providers that speak OpenAI's batch API: `/files` and `/batches` below the address of their models. */
export function createProviderBatchApi({ upstream, offerOf, askMs = ASK_MS }: ProviderBatchApiOptions): ProviderApi {
  const serverOf = (id: string): { readonly offer: Offer; readonly endpoint: DirectEndpoint } | null => {
    const offer = offerOf(id);
    if (offer?.endpoint.kind !== 'direct') return null;
    return { offer, endpoint: offer.endpoint };
  };

  function takes(id: string): boolean {
    const server = serverOf(id);
    return server !== null && batchPriceOf(server.offer) !== undefined;
  }

  async function ask(
    { offer: id, account }: ProviderPlace,
    { begins = false, ...request }: BatchApiRequest,
    stop: AbortSignal,
  ): Promise<UpstreamReply> {
    const server = serverOf(id);
    if (server === null || (begins && !takes(id)))
      throw new ProviderFailure('The provider of this model takes no batches any more', { unsent: true });
    const { offer, endpoint } = server;
    const { name } = offer.provider;
    try {
      const headers = { accept: 'application/json', ...request.headers };
      const exchange = upstream.send(endpoint, { body: null, ...request, headers }, account);
      stop.addEventListener('abort', () => exchange.abort(tooLate()), { once: true });
      const reply = await exchange.head;
      if (reply.status < ERROR) return reply;
      const text = (await bytesOf(reply, ANSWER_BYTES_MAX)).toString();
      throw new ProviderFailure(`${name} answered ${reply.status} about a batch${detailOf(text, reply.scrub)}`, reply);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const { unsent, unreachable } = error;
      throw new ProviderFailure(`${name} could not be asked about a batch: ${error.message}`, {
        unsent: unsent || unreachable,
      });
    }
  }

  async function answerOf(place: ProviderPlace, request: BatchApiRequest): Promise<Buffer> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), askMs);
    try {
      const reply = await ask(place, request, stop.signal);
      return await bytesOf(reply, ANSWER_BYTES_MAX);
    } catch (error) {
      if (error instanceof ProviderFailure) throw error;
      throw new ProviderFailure(`The answer about a batch broke off: ${error instanceof Error ? error.message : ''}`);
    } finally {
      clearTimeout(timer);
    }
  }

  async function askJson(place: ProviderPlace, request: BatchApiRequest): Promise<JsonObject> {
    const bytes = await answerOf(place, request);
    const answer = foreignObject(bytes, BOUNDS.providerBatch);
    if (answer === null) throw new ProviderFailure('The answer about a batch is no JSON object');
    return answer;
  }

  async function idIn(place: ProviderPlace, request: BatchApiRequest): Promise<string> {
    const { id } = await askJson(place, request);
    if (!isId(id)) throw new ProviderFailure('The answer about a batch has no id');
    return id;
  }

  const post = (path: string, body: object): BatchApiRequest => ({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    begins: true,
  });

  return {
    upload(place, name, lines) {
      const form = new FormBody();
      form.field('purpose', 'batch');
      form.file('file', name, 'application/jsonl', Buffer.concat(lines));
      return idIn(place, {
        method: 'POST',
        path: '/files',
        headers: { 'content-type': form.contentType },
        body: form.end(),
        begins: true,
      });
    },

    create: (place, file, path, tag) =>
      idIn(
        place,
        post('/batches', {
          input_file_id: file,
          endpoint: `/v1${path}`,
          completion_window: '24h',
          metadata: { tollgate: tag },
        }),
      ),

    async find(place, file, since) {
      let after = '';
      for (let page = 0; page < PAGES_MAX; page++) {
        const { data, has_more: more } = await askJson(place, {
          method: 'GET',
          path: `/batches?limit=${PAGE}${after === '' ? '' : `&after=${encodeURIComponent(after)}`}`,
        });
        const all = Array.isArray(data) ? data.filter(isObject) : [];
        const batchObject = all.find((one) => one['input_file_id'] === file);
        if (batchObject !== undefined && isId(batchObject['id'])) return batchObject['id'];
        const last = all.at(-1);
        // The newest come first.
        const isOld = typeof last?.['created_at'] === 'number' && last['created_at'] * MS < since;
        if (last === undefined || more !== true || isOld || !isId(last['id'])) return null;
        after = last['id'];
      }
      return null;
    },

    lookUp: async (place, remote) =>
      toRemoteBatch(await askJson(place, { method: 'GET', path: `/batches/${remote}` }), scrub(place.offer)),

    async cancel(place, remote) {
      await askJson(place, { method: 'POST', path: `/batches/${remote}/cancel` });
    },

    read: (place, file, bytesMax, stop) =>
      contentOf(ask(place, { method: 'GET', path: `/files/${file}/content` }, stop), bytesMax),

    async remove(place, file) {
      await askJson(place, { method: 'DELETE', path: `/files/${file}` });
    },

    takes,

    providerOf: (offer) => offerOf(offer)?.provider.id ?? offer,

    scrubOf: scrub,
  };

  function scrub(offer: string) {
    const server = serverOf(offer);
    return server === null ? scrubNothing : scrubOf(server.endpoint.headers);
  }
}

const tooLate = () => new UpstreamFailure('it took too long', { retryable: true, attributedTo: 'provider' });

/** The content of a file. Throws ProviderFailure, also for what is beyond `bytesMax`. */
async function* contentOf(
  upstreamReply: Promise<UpstreamReply>,
  bytesMax: number,
): AsyncGenerator<Buffer, void, undefined> {
  const reply = await upstreamReply;
  let bytesLeft = bytesMax;
  try {
    for (;;) {
      const chunks = await reply.read();
      if (chunks === null) return;
      for (const chunk of chunks) {
        bytesLeft -= chunk.byteLength;
        if (bytesLeft < 0) throw tooLarge(bytesMax, reply.headers['content-length']);
        yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      }
    }
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    throw new ProviderFailure(`The results of a batch broke off: ${error.message}`);
  } finally {
    reply.discard();
  }
}

function tooLarge(bytesMax: number, length: string | undefined): ProviderFailure {
  const bytes = Number(length) > bytesMax ? length : `more than ${bytesMax}`;
  return new ProviderFailure(
    `The provider's file with the results has ${bytes} bytes, and at most ${bytesMax} are read (batches.account_bytes_max): the answer to this line was not among them`,
    { tooLarge: true },
  );
}

/** Ids of a provider become parts of addresses. */
const ID = /^[A-Za-z0-9_-]{1,128}$/;
const isId = (id: unknown): id is string => typeof id === 'string' && ID.test(id);

async function bytesOf(reply: UpstreamReply, bytesMax: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytesLeft = bytesMax;
  for (;;) {
    const chunks = await reply.read();
    if (chunks === null) break;
    for (const chunk of chunks) {
      bytesLeft -= chunk.byteLength;
      if (bytesLeft < 0)
        throw new UpstreamFailure('it is too large', { retryable: false, attributedTo: 'provider', tooLarge: true });
      pieces.push(chunk);
    }
  }
  return Buffer.concat(pieces);
}

/** The provider's words for a refusal, after a colon; '' without any. */
function detailOf(text: string, scrub: Scrub): string {
  const error = foreignObject(text, BOUNDS.providerBatch)?.['error'];
  const message = isObject(error) ? error['message'] : error;
  return typeof message === 'string' && message !== '' ? `: ${shownText(message, scrub)}` : '';
}

/** A text without secrets, on one line. It is cut last, because no part of a secret would be found. */
const shownText = (text: string, scrub: Scrub): string => oneLine(scrub(text)).slice(0, TEXT_MAX);

function toRemoteBatch(batch: JsonObject, scrub: Scrub): RemoteBatch {
  const file = (id: unknown) => (isId(id) ? id : null);
  const text = (value: unknown) => (typeof value === 'string' ? shownText(value, scrub) : '');
  const errors = isObject(batch['errors']) ? batch['errors']['data'] : null;
  const counts = batch['request_counts'];
  const done = isObject(counts) ? counts['completed'] : null;
  return {
    status: text(batch['status']),
    done: Number.isSafeInteger(done) ? Math.max(0, done as number) : null,
    outputFile: file(batch['output_file_id']),
    errorFile: file(batch['error_file_id']),
    faults: (Array.isArray(errors) ? errors.slice(0, FAULTS_MAX).filter(isObject) : []).map(({ code, message }) => ({
      code: text(code),
      message: text(message),
    })),
  };
}
