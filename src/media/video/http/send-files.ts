import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHttpSink, type ClientSink } from '#http';
import { GatewayError } from '#errors';
import type { Config } from '#config';
import { type Admission, rateHeaders } from '#limits';
import { type Blob, type Blobs, BlobUnreachable, type BodyPiece, pieceLength, rangeOf, writePieces } from '#files';
import type { Task } from '#tasks';

interface SendFilesDeps {
  readonly blobs: Pick<Blobs, 'read'>;
  readonly config: Pick<Config, 'limits'>;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** Answers a request with the files of a task. `several`: as an archive. */
export type SendFiles = (
  request: FastifyRequest,
  reply: FastifyReply,
  task: Task,
  files: readonly Blob[],
  several: boolean,
) => Promise<void>;

export function createSendFiles(
  { blobs, config, onError }: SendFilesDeps,
  admissionOf: (request: FastifyRequest) => Admission,
): SendFiles {
  return async (request, reply, task, files, several) => {
    const sink = createHttpSink(
      reply,
      config.limits.clientStallMs,
      () => {},
      () => rateHeaders(admissionOf(request).rate),
    );
    const more = { 'x-task-status': 'completed', 'x-generation-id': task.taskId };
    try {
      await sendBody(blobs, bodyOf(files, task.taskId, several), request.headers, more, sink);
    } catch (error) {
      if (!reply.sent) throw error;
      // The head is already sent, and the connection is closed. The client sees from the length that bytes are
      // missing.
      onError(error, request);
    }
    if (!reply.sent) reply.hijack();
  };
}

interface FileBody {
  readonly pieces: readonly BodyPiece[];
  readonly type: string;
  readonly name: string;
  readonly etag: string;
}

const RETRY_S = 5;

/**
 * The body for files: an archive if several variants were asked for, even if only one of them came, else the file as it
 * is. `name`: name of the file, without its extension.
 */
function bodyOf(files: readonly Blob[], name: string, several: boolean): FileBody {
  const [first] = files;
  if (!several && first) return { pieces: [first], type: first.type, name: `${name}.mp4`, etag: `"${first.sha256}"` };
  const pieces = zipPieces(files.map((blob, at) => ({ name: `variant_${at}.mp4`, blob })));
  const etag = `"${hash('sha256', files.map(({ sha256 }) => sha256).join())}"`;
  return { pieces, type: 'application/zip', name: `${name}.zip`, etag };
}

/**
 * Sends a body, or the part of it that `Range` asks for. If `If-Range` names another body, the whole body is sent.
 * Throws GatewayError `service_unavailable` while a file cannot be read.
 */
async function sendBody(
  blobs: Pick<Blobs, 'read'>,
  { pieces, type, name, etag }: FileBody,
  headers: IncomingHttpHeaders,
  more: Readonly<Record<string, string>>,
  sink: ClientSink,
): Promise<void> {
  const length = pieces.reduce((sum, piece) => sum + pieceLength(piece), 0);
  const isSame = (headers['if-range'] ?? etag) === etag;
  const part = isSame ? rangeOf(headers.range, length) : 'whole';
  const common = {
    ...more,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-transform',
    'content-security-policy': "default-src 'none'; sandbox",
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    etag,
  };
  if (part === 'none') {
    sink.head(416, { ...common, 'content-range': `bytes */${length}`, 'content-length': 0 });
    return sink.end('');
  }
  const range = part === 'whole' ? { start: 0, end: length - 1 } : part;
  let begun = false;
  try {
    await writePieces(blobs, pieces, range, sink, () => {
      begun = true;
      sink.head(part === 'whole' ? 200 : 206, {
        ...common,
        'content-type': type,
        'content-length': range.end - range.start + 1,
        'content-disposition': `attachment; filename="${name}"`,
        ...(part === 'whole' ? {} : { 'content-range': `bytes ${range.start}-${range.end}/${length}` }),
      });
    });
  } catch (cause) {
    if (begun || !(cause instanceof BlobUnreachable)) throw cause;
    throw new GatewayError('service_unavailable', 'The file cannot be read at the moment', {
      retryAfterS: RETRY_S,
      cause,
    });
  }
}

/*
 * A ZIP archive without compression (APPNOTE.TXT 6.3.10, method 0). The checksums are known before, so the length of
 * the archive is known too.
 */

const LOCAL = 0x04_03_4b_50;
const CENTRAL = 0x02_01_4b_50;
const END = 0x06_05_4b_50;
const VERSION = 20;
/** Names are UTF-8. */
const FLAGS = 0x08_00;
/** The pieces of an archive of these files, under these names. Together they have less than 4 GiB. */
function zipPieces(files: readonly { readonly name: string; readonly blob: Blob }[]): readonly BodyPiece[] {
  const pieces: BodyPiece[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, blob } of files) {
    const written = Buffer.from(name, 'utf8');
    const common = commonFields(blob, written.length);
    const local = Buffer.alloc(4);
    local.writeUInt32LE(LOCAL);
    pieces.push(Buffer.concat([local, common, written]), blob);
    const head = Buffer.alloc(6);
    head.writeUInt32LE(CENTRAL);
    head.writeUInt16LE(VERSION, 4);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([head, common, tail, written]));
    at += local.length + common.length + written.length + blob.bytes;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(END);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(at, 16);
  return [...pieces, Buffer.concat([entries, end])];
}

/** The fields that both headers have: from the version to the lengths of name and extra field. */
function commonFields({ bytes, crc32, createdAt }: Blob, nameLength: number): Buffer {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(VERSION, 0);
  fields.writeUInt16LE(FLAGS, 2);
  const date = new Date(createdAt);
  fields.writeUInt16LE((date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1), 6);
  const day = ((date.getUTCFullYear() - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  fields.writeUInt16LE(day, 8);
  fields.writeUInt32LE(crc32, 10);
  fields.writeUInt32LE(bytes, 14);
  fields.writeUInt32LE(bytes, 18);
  fields.writeUInt16LE(nameLength, 22);
  return fields;
}
