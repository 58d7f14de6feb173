import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Busboy as Form, BusboyFileStream, BusboyHeaders } from '@fastify/busboy';
import { GatewayError } from '#errors';
import { chunksOf, chunksTooSmall } from '#http';

/** A form (`multipart/form-data`) with one file, which is read while it arrives. */
interface FileForm {
  readonly name: string;
  readonly content: AsyncIterable<Uint8Array>;
  /** Resolves when the whole form has arrived. Fields with brackets have the names as they were sent. */
  fields(): Promise<ReadonlyMap<string, string>>;
  /** Stops reading what has not arrived. To be called at the end, however it came. */
  close(): void;
}

interface FormLimits {
  readonly uploadBytesPerSecondMin: number;
}

const FILE = 'file';
const FIELDS_MAX = 16;
const FIELD_BYTES_MAX = 1024;
const NAME_BYTES_MAX = 64;
const HEADER_PAIRS_MAX = 32;
const HEADER_BYTES_MAX = 8 * 1024;
/** The speed is measured over this time. */
const WINDOW_MS = 10_000;

const fault = (message: string, param: string | null = null) =>
  new GatewayError('invalid_request', message, param === null ? {} : { param });
const broken = (why: string) => fault(`The body is not a valid form (multipart/form-data): ${why}`);

/**
 * Begins to read a form. Resolves when its file begins to arrive. Its promises and its content reject with GatewayError
 * `invalid_request`, and with `request_timeout` if it arrives too slowly.
 */
export async function readFileForm(
  payload: Readable,
  headers: IncomingHttpHeaders,
  { uploadBytesPerSecondMin }: FormLimits,
): Promise<FileForm> {
  const type = headers['content-type'] ?? '';
  if (!/^multipart\/form-data(?:;|$)/i.test(type)) throw broken('its content-type is not multipart/form-data');
  // Loaded with the first upload.
  const { Busboy } = await import('@fastify/busboy');
  let form: Form;
  try {
    form = new Busboy({
      headers: headers as BusboyHeaders,
      limits: {
        files: 1,
        fields: FIELDS_MAX,
        fieldSize: FIELD_BYTES_MAX,
        fieldNameSize: NAME_BYTES_MAX,
        headerPairs: HEADER_PAIRS_MAX,
        headerSize: HEADER_BYTES_MAX,
      },
    });
  } catch (error) {
    throw broken(error instanceof Error ? error.message : 'its content-type has no boundary');
  }
  const fields = new Map<string, string>();
  const begun = Promise.withResolvers<{ readonly name: string; readonly stream: BusboyFileStream }>();
  const ended = Promise.withResolvers<void>();
  // Whoever waits for one of them gets the error. The other must not be an unhandled rejection.
  begun.promise.catch(() => {});
  ended.promise.catch(() => {});
  let file: BusboyFileStream | null = null;
  const fail = (error: unknown) => {
    const known = error instanceof GatewayError ? error : broken(error instanceof Error ? error.message : 'unreadable');
    begun.reject(known);
    ended.reject(known);
    payload.unpipe(form);
    // Without listeners it would be an uncaught error.
    file?.on('error', () => {});
    file?.destroy(known);
  };
  const pace = watchPace(payload, uploadBytesPerSecondMin, fail);
  form.on('file', (name, stream, fileName) => {
    if (name !== FILE) fail(fault(`${name} is a file; the file of an upload is ${FILE}`, name));
    file = stream;
    begun.resolve({ name: fileName ?? FILE, stream });
  });
  form.on('field', (name, value, isNameCut, isValueCut) => {
    if (isNameCut || isValueCut || fields.has(name)) return fail(fault(`${name} is too long, or occurs twice`, name));
    fields.set(name, value);
  });
  form.on('filesLimit', () => fail(fault('An upload has one file', FILE)));
  form.on('fieldsLimit', () => fail(broken('it has too many fields')));
  form.on('finish', () => {
    begun.reject(fault('file is missing: an upload is a form with a file', FILE));
    ended.resolve();
  });
  form.on('error', fail);
  payload.on('error', fail);
  payload.on('aborted', () => fail(broken('it ends early')));
  payload.pipe(form);
  ended.promise.then(pace, pace);
  const { name, stream } = await begun.promise;
  return {
    name,
    content: stream,
    async fields() {
      await ended.promise;
      return fields;
    },
    close: () => fail(broken('it was not read to its end')),
  };
}

/** Fails an upload that is slower than the least speed, or in too small chunks. Returns the function that ends this. */
function watchPace(payload: Readable, bytesPerSecondMin: number, fail: (error: GatewayError) => void): () => void {
  const chunks = chunksOf(payload);
  let bytes = 0;
  const count = (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (chunks?.areTooSmall !== true) return;
    // Thousands of others may be in what was read.
    payload.off('data', count);
    fail(chunksTooSmall());
  };
  payload.on('data', count);
  const timer = setInterval(() => {
    // While the form waits for the database, nothing is read.
    if (!payload.isPaused() && bytes < (bytesPerSecondMin * WINDOW_MS) / 1_000)
      fail(
        new GatewayError(
          'request_timeout',
          `The file arrives with less than ${bytesPerSecondMin} bytes per second: send it faster. The operator sets this with limits.upload_bytes_per_second_min`,
        ),
      );
    bytes = 0;
  }, WINDOW_MS).unref();
  return () => {
    clearInterval(timer);
    payload.off('data', count);
  };
}
