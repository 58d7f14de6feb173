import { setTimeout as pause } from 'node:timers/promises';
import { BlobUnreachable } from './blob.ts';

/** A bucket of an S3-compatible store. */
export interface S3Store {
  /** URL of the bucket, optionally with a key prefix. */
  readonly url: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

interface S3Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'HEAD';
  /** The key without the prefix; null for the bucket itself. */
  readonly key: string | null;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal?: AbortSignal;
}

export interface S3Client {
  /** The prefix of all keys. Ends with `/` unless it is empty. */
  readonly prefix: string;
  /**
   * Resolves with a response whose status is below 300, or is 404. Its body is not read yet. Connection errors, 429 and
   * 5xx are tried three times in total. Rejects with BlobUnreachable.
   */
  send(request: S3Request): Promise<Response>;
  /** Like `send`, with the body as text. */
  sendForText(request: S3Request): Promise<{ readonly status: number; readonly text: string; readonly etag: string }>;
}

const TRIES = 3;
const PAUSE_MS = 200;
/** Timeout until the head of a response. It includes sending a part of 8 MiB. */
const ANSWER_MS = 60_000;

export async function createS3Client({ url, region, accessKeyId, secretAccessKey }: S3Store): Promise<S3Client> {
  const { AwsClient } = await import('aws4fetch');
  const client = new AwsClient({ accessKeyId, secretAccessKey, region, service: 's3', retries: 0 });
  const bucket = new URL(url);
  const [, name = '', ...folders] = bucket.pathname.replace(/\/$/, '').split('/');
  const prefix = folders.length === 0 ? '' : `${folders.join('/')}/`;
  const root = `${bucket.origin}/${name}`;

  async function once({ method, key, query = {}, headers = {}, body, signal }: S3Request): Promise<Response> {
    const search = new URLSearchParams(query).toString();
    const address = `${root}${key === null ? '' : `/${prefix}${key}`}${search === '' ? '' : `?${search}`}`;
    const signed = await client.sign(address, {
      method,
      // The MD5 header protects the body, so it is not hashed again for the signature.
      headers: { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    });
    const waiting = new AbortController();
    const timer = setTimeout(() => waiting.abort(new Error(`no answer in ${ANSWER_MS / 1000} s`)), ANSWER_MS);
    try {
      return await fetch(signed, { signal: signal ? AbortSignal.any([signal, waiting.signal]) : waiting.signal });
    } finally {
      clearTimeout(timer);
    }
  }

  async function send(request: S3Request): Promise<Response> {
    for (let tried = 1; ; tried += 1) {
      const answer = await once(request).catch((error: unknown) => error as Error);
      const isAnswer = answer instanceof Response;
      if (isAnswer && (answer.status < 300 || answer.status === 404)) return answer;
      const isTheirs = !isAnswer || answer.status >= 500 || answer.status === 429;
      if (!isTheirs || tried === TRIES || request.signal?.aborted === true) throw await unreachable(answer);
      if (isAnswer) await answer.body?.cancel();
      await pause(PAUSE_MS * 4 ** (tried - 1));
    }
  }

  return {
    prefix,
    send,
    async sendForText(request) {
      const answer = await send(request);
      const { status, headers } = answer;
      const text = await answer.text().catch((cause: unknown) => {
        throw new BlobUnreachable('the store of files broke off its answer', { cause });
      });
      return { status, text, etag: headers.get('etag') ?? '' };
    },
  };
}

const CODE = /<Code>([A-Za-z0-9]{1,64})<\/Code>/;

async function unreachable(answer: Response | Error): Promise<BlobUnreachable> {
  if (answer instanceof Error) return new BlobUnreachable('the store of files cannot be reached', { cause: answer });
  const code = CODE.exec(await answer.text().catch(() => ''))?.[1];
  return new BlobUnreachable(`the store of files answers ${answer.status}${code === undefined ? '' : ` ${code}`}`);
}
