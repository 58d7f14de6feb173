import { createHash, hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { crc32 } from 'node:zlib';
import { setTimeout as pause } from 'node:timers/promises';
import { BUCKET_HOLDER, mediaPath } from '#store';
import { type BlobReader, BlobUnreachable, type ByteRange, FileTooLarge } from './blob.ts';
import type { BlobFiles, OpenBlobFile } from './blob-files.ts';

/** Bytes of one request. A larger file is sent in parts of this size, so only one part is in memory. */
const PART_BYTES = 8 * 1024 * 1024;
const KEY = /([0-9a-f]{2})\/(\1[0-9a-f]{30})$/;

/**
 * Files in a bucket, as `<prefix>ab/<id>`. Gateways with the same bucket and prefix share one store. All of them read
 * and sweep it.
 */
export async function openS3Files(store: S3Store): Promise<BlobFiles> {
  const client = await createS3Client(store);
  return {
    holder: `${BUCKET_HOLDER}${hash('sha256', store.url.replace(/\/$/, '')).slice(0, 32)}`,
    create: async (id, bytesMax) => createFile(client, mediaPath(id), bytesMax),
    async read(id, range) {
      const reading = new AbortController();
      const body = await bodyOf(client, id, range, reading.signal);
      return { [Symbol.asyncIterator]: () => chunksOf(body), destroy: () => reading.abort() } satisfies BlobReader;
    },
    async stream(id, range) {
      const reading = new AbortController();
      const stream = Readable.fromWeb(await bodyOf(client, id, range, reading.signal));
      return stream.once('close', () => reading.abort());
    },
    remove: async (id) => void (await client.sendForText({ method: 'DELETE', key: mediaPath(id) })),
    async removePart(path) {
      const [key = '', uploadId = ''] = path.split(' ');
      await client.sendForText({ method: 'DELETE', key, query: { uploadId } });
    },
    free: () => Promise.resolve(Number.MAX_SAFE_INTEGER),
    olderThan: async (time) => ({ ids: await idsBefore(client, time), parts: await uploadsBefore(client, time) }),
  };
}

async function bodyOf(
  client: S3Client,
  id: string,
  { start, end }: ByteRange,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const headers = { range: `bytes=${start}-${end}` };
  const {
    status,
    body,
    headers: replyHeaders,
  } = await client.send({ method: 'GET', key: mediaPath(id), headers, signal });
  // A store may answer a range over the whole file with status 200.
  const isPart = status === 206 || (start === 0 && replyHeaders.get('content-length') === String(end + 1));
  if (status < 300 && body !== null && (isPart || start > end)) return body as ReadableStream<Uint8Array>;
  await body?.cancel();
  throw new BlobUnreachable(status === 404 ? 'the store of files does not have the file' : 'the store ignores ranges');
}

async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* body;
  } catch (cause) {
    throw new BlobUnreachable('the store of files broke off its answer', { cause });
  }
}

/**
 * A file that is uploaded while it is written, in one request or in parts. It appears in the store only when it is
 * complete.
 */
function createFile(client: S3Client, key: string, bytesMax: number): OpenBlobFile {
  const digest = createHash('sha256');
  const etags: string[] = [];
  let check = 0;
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let uploadId: string | null = null;

  const take = (): Buffer => {
    const all = Buffer.concat(pending);
    pending = [];
    pendingBytes = 0;
    return all;
  };
  const md5 = (body: Buffer) => ({ 'content-md5': hash('md5', body, 'base64') });

  async function sendPart(): Promise<void> {
    uploadId ??= await beginUpload(client, key);
    const body = take();
    const query = { partNumber: String(etags.length + 1), uploadId };
    const { status, etag } = await client.sendForText({ method: 'PUT', key, query, headers: md5(body), body });
    if (status === 404 || etag === '') throw new BlobUnreachable('the store of files lost the parts of a file');
    etags.push(etag);
  }

  const file: OpenBlobFile & { bytes: number } = {
    bytes: 0,
    async write(chunk) {
      file.bytes += chunk.byteLength;
      if (file.bytes > bytesMax) throw new FileTooLarge(`it is larger than ${bytesMax} bytes`);
      digest.update(chunk);
      check = crc32(chunk, check);
      // The chunk is copied, because the caller may reuse its memory after this resolves.
      pending.push(Buffer.from(chunk));
      pendingBytes += chunk.byteLength;
      if (pendingBytes >= PART_BYTES) await sendPart();
    },
    async finish() {
      if (uploadId === null) {
        const body = take();
        await client.sendForText({ method: 'PUT', key, headers: md5(body), body });
      } else {
        if (pendingBytes > 0) await sendPart();
        await completeUpload(client, key, uploadId, etags);
      }
      // Check the file whatever the store has answered, because a missing file must not be charged.
      const { status, headers } = await client.send({ method: 'HEAD', key });
      if (status !== 200 || headers.get('content-length') !== String(file.bytes))
        throw new BlobUnreachable('the store of files does not have what was sent to it');
      return { sha256: digest.digest('hex'), crc32: check };
    },
    async drop() {
      take();
      if (uploadId === null) return;
      // removeOrphans removes the remains later.
      await client.sendForText({ method: 'DELETE', key, query: { uploadId } }).catch(() => {});
    },
  };
  return file;
}

async function beginUpload(client: S3Client, key: string): Promise<string> {
  const { text } = await client.sendForText({ method: 'POST', key, query: { uploads: '' } });
  const id = /<UploadId>([^<>&\s]{1,1024})<\/UploadId>/.exec(text)?.[1];
  if (id === undefined) throw new BlobUnreachable('the file store does not support multipart uploads');
  return id;
}

/**
 * Completes the upload. `finish` checks the file afterwards, which also detects a lost response, or an error after the
 * response has begun.
 */
async function completeUpload(
  client: S3Client,
  key: string,
  uploadId: string,
  etags: readonly string[],
): Promise<void> {
  const parts = etags.map((etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${etag}</ETag></Part>`);
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`);
  const headers = { 'content-type': 'application/xml' };
  await client.sendForText({ method: 'POST', key, query: { uploadId }, headers, body });
}

const member = (name: string, text: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];

/** The insides of all elements with this name. */
const elementsIn = (text: string, name: string): readonly string[] =>
  text
    .split(`<${name}>`)
    .slice(1)
    .map((rest) => rest.split(`</${name}>`, 1)[0]!);

async function idsBefore(client: S3Client, time: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let token: string | undefined = ''; token !== undefined;) {
    const query = { 'list-type': '2', prefix: client.prefix, ...(token === '' ? {} : { 'continuation-token': token }) };
    const { status, text } = await client.sendForText({ method: 'GET', key: null, query });
    if (status === 404) throw new BlobUnreachable('the store of files has no bucket at this address');
    for (const one of elementsIn(text, 'Contents')) {
      const id = KEY.exec(ownKey(client, one))?.[2];
      if (id !== undefined && isBefore(member('LastModified', one), time)) ids.push(id);
    }
    token = member('IsTruncated', text) === 'true' ? member('NextContinuationToken', text) : undefined;
  }
  return ids;
}

/** Uploads that were not completed. Stores that cannot list them remove them on their own. */
async function uploadsBefore(client: S3Client, time: number): Promise<readonly { id: string; path: string }[]> {
  const query = { uploads: '', prefix: client.prefix };
  const listed = await client.sendForText({ method: 'GET', key: null, query }).catch(() => null);
  return elementsIn(listed?.text ?? '', 'Upload').flatMap((one) => {
    const key = KEY.exec(ownKey(client, one));
    const uploadId = member('UploadId', one);
    return key && uploadId !== undefined && isBefore(member('Initiated', one), time)
      ? [{ id: key[2]!, path: `${key[0]} ${uploadId}` }]
      : [];
  });
}

/** The key of a list element, without the prefix; empty for a key that is not ours. */
function ownKey({ prefix }: S3Client, element: string): string {
  const key = member('Key', element) ?? '';
  return key.startsWith(prefix) && key.length === prefix.length + 35 ? key.slice(prefix.length) : '';
}

const isBefore = (date: string | undefined, time: number) => date !== undefined && Date.parse(date) <= time;

interface S3Store {
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

interface S3Client {
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

async function createS3Client({ url, region, accessKeyId, secretAccessKey }: S3Store): Promise<S3Client> {
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
