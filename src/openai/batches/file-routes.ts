import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { Places } from '#wire';
import { type ClientSink, createHttpSink, refuseCoding } from '#http';
import type { Config } from '#config';
import { rateHeaders } from '#limits';
import type { Pipeline } from '#call';
import { requireAdmission } from '#auth';
import { ownerOf } from '#tasks';
import type { StoredFile, StoredFiles } from '#batch-jobs';
import { described, expiresAfterSchema, idParams, keepMsOf } from './shared-schema.ts';
import { listAnswer, listSchema, pageOf, pageProperties, type PageQuery } from './list-page.ts';
import { readFileForm } from './upload.ts';

interface FileRoutesDeps {
  readonly pipeline: Pick<Pipeline, 'admit' | 'admitPoll'>;
  readonly files: StoredFiles;
  readonly config: Pick<Config, 'limits' | 'batches'>;
}

interface OfFile {
  Params: { file_id: string };
}

const LIST_MAX = 10_000;
/** Bytes of a form around its file. */
const FORM_BYTES = 64 * 1024;
const MS = 1_000;
const NAME_MAX = 255;
/** Downloads at the same time, each with about 2 MiB in memory. */
const READERS_MAX = 32;
const ACCOUNT_READERS_MAX = 8;
const READER_WAIT_MS = 10_000;
const RETRY_S = 5;

const params = idParams('file');

/** `/files`, as in OpenAI's API: the input of batches, and their results. Register it under `/api/v1`. */
export function fileRoutes({ pipeline, files, config }: FileRoutesDeps): FastifyPluginAsync {
  const { limits, batches } = config;
  const readers = new Places({ total: READERS_MAX, perShare: ACCOUNT_READERS_MAX });
  // Anthropic's clients ask for files at the same address, and would not understand these.
  const refuseAnthropic = (app: FastifyInstance) =>
    app.addHook('onRequest', async ({ headers }) => {
      if (headers['anthropic-version'] === undefined) return;
      throw new GatewayError('not_found', "Files of Anthropic's API are not kept here: send documents in the messages");
    });

  const uploads: FastifyPluginAsync = async (app) => {
    refuseAnthropic(app);
    const admissionOf = requireAdmission(app, pipeline.admit);
    app.removeAllContentTypeParsers();
    // The form is read while it arrives.
    app.addContentTypeParser(/^multipart\/form-data(?:;|$)/i, (request, payload, done) => {
      refuseCoding(request);
      done(null, payload);
    });
    app.post<{ Body: Readable | undefined }>(
      '/files',
      {
        config: { ofCalls: true },
        bodyLimit: batches.fileBytesMax + FORM_BYTES,
        schema: {
          ...described(
            'Upload a file',
            'uploadFile',
            'Stores the input of a batch: a JSONL file with one request on each line. It is deleted after 30 days, or earlier as `expires_after` says.',
          ),
          consumes: ['multipart/form-data'],
          body: UPLOAD,
          response: { 200: fileSchema },
        },
        // The body is a stream here.
        validatorCompiler: () => () => true,
      },
      async (request) => {
        const owner = ownerOf(admissionOf(request).caller);
        const { body } = request;
        if (body === undefined) throw new GatewayError('invalid_request', 'file is missing', { param: 'file' });
        await files.admit(owner);
        const form = await readFileForm(body, request.headers, limits);
        const memory = app.requestBodies.beside(request);
        try {
          const stored = await files.write(owner, {
            name: form.name.slice(0, NAME_MAX),
            content: form.content,
            holds: memory.becomes,
            keepMs: async () => keepMsIn(await form.fields(), batches.keepMs),
          });
          return toFileObject(stored);
        } finally {
          form.close();
          memory.release();
        }
      },
    );
  };

  return async (app) => {
    await app.register(uploads);
    refuseAnthropic(app);
    const admissionOf = requireAdmission(app, pipeline.admitPoll);
    const find = async (request: FastifyRequest<OfFile>): Promise<StoredFile> => {
      const id = request.params.file_id;
      const storedFile = await files.find(id, ownerOf(admissionOf(request).caller));
      if (storedFile === null) throw noFile(id);
      return storedFile;
    };
    app.get<{ Querystring: ListQuery }>(
      '/files',
      {
        schema: {
          ...described('List files', 'listFiles', 'The files of the account, the newest first.'),
          querystring: LIST,
          response: { 200: listSchema(fileSchema) },
        },
      },
      async (request) => {
        const { order = 'desc', purpose = null, ...page } = request.query;
        const owner = ownerOf(admissionOf(request).caller);
        return listAnswer(await files.list(owner, { ...pageOf(page), order, purpose }), toFileObject);
      },
    );
    app.get<OfFile>(
      '/files/:file_id',
      {
        schema: {
          ...described('Show a file', 'showFile', 'What is known of a file, without its content.'),
          params,
          response: { 200: fileSchema },
        },
      },
      async (request) => toFileObject(await find(request)),
    );
    app.get<OfFile>(
      '/files/:file_id/content',
      {
        exposeHeadRoute: false,
        schema: {
          ...described(
            'Fetch a file',
            'fetchFile',
            'The content of a file, as it was uploaded, or the results of a batch.',
          ),
          params,
          response: {
            200: {
              description: 'The lines of the file.',
              content: { 'application/jsonl': { schema: { type: 'string', format: 'binary' } } },
            },
          },
        },
      },
      async (request, reply) => {
        const file = await find(request);
        const share = await files.shareOf(file.account);
        const place = await readers.take(file.account, { share, stop: AbortSignal.timeout(READER_WAIT_MS) });
        if (place === null) throw tooManyReaders();
        const memory = app.requestBodies.beside(request);
        try {
          const { rate } = admissionOf(request);
          const headers = () => ({ ...rateHeaders(rate), 'x-request-id': request.id });
          const client = createHttpSink(reply, limits.clientStallMs, () => {}, headers);
          await sendFile(files.read(file, memory.becomes), file.bytes, client);
        } finally {
          memory.release();
          place.release();
        }
      },
    );
    app.delete<OfFile>(
      '/files/:file_id',
      {
        config: { ofCalls: true },
        schema: {
          ...described(
            'Delete a file',
            'deleteFile',
            'Deletes a file. The input of a batch stays until the batch has ended.',
          ),
          params,
          response: { 200: deletedSchema },
        },
      },
      async (request) => {
        const file = await find(request);
        if (!(await files.delete(file)))
          throw new GatewayError(
            'invalid_request',
            'A batch that has not ended reads this file: wait for its end, or cancel it first',
            { param: 'file_id' },
          );
        return { id: file.id, object: 'file', deleted: true };
      },
    );
  };
}

/** Sends the content of a file. `bytes`: its length. */
async function sendFile(pieces: ReturnType<StoredFiles['read']>, bytes: number, client: ClientSink): Promise<void> {
  let begun = false;
  const begin = () => {
    begun = true;
    client.head(200, {
      'content-type': 'application/jsonl',
      'content-length': bytes,
      'content-disposition': 'attachment; filename="file.jsonl"',
      'cache-control': 'private, no-transform',
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
  };
  try {
    for await (const piece of pieces) {
      if (!begun) begin();
      if (client.closed) return;
      if (!client.write(piece)) await client.drained();
    }
  } catch (error) {
    if (!begun) throw error;
    // The head has promised more.
    return client.cut();
  }
  if (!begun) begin();
  client.end('');
}

const tooManyReaders = () =>
  new GatewayError(
    'rate_limit_exceeded',
    `Too many files are being downloaded: one account may read ${ACCOUNT_READERS_MAX} at the same time, and fewer while others read. Retry when a download has ended`,
    { retryAfterS: RETRY_S },
  );

/** The time for which an upload is kept. Throws GatewayError `invalid_request` if its purpose is not served. */
function keepMsIn(fields: ReadonlyMap<string, string>, mostMs: number): number {
  const purpose = fields.get('purpose');
  if (purpose !== 'batch')
    throw new GatewayError(
      'invalid_request',
      'purpose must be "batch": this gateway keeps files only for batches. Send other files inside the requests that use them',
      { param: 'purpose' },
    );
  const [anchor, seconds] = ['anchor', 'seconds'].map((name) => fields.get(`expires_after[${name}]`));
  return keepMsOf('expires_after', anchor, seconds, mostMs);
}

export const noFile = (id: string, param = 'file_id'): GatewayError =>
  new GatewayError('not_found', `No such File object: ${id.slice(0, NAME_MAX)}`, { param });

const toFileObject = ({ id, bytes, createdAt, expiresAt, name, purpose }: StoredFile) => ({
  id,
  object: 'file',
  bytes,
  created_at: Math.floor(createdAt / MS),
  expires_at: Math.floor(expiresAt / MS),
  filename: name,
  purpose,
  status: 'processed',
});

const UPLOAD = {
  type: 'object',
  required: ['file', 'purpose'],
  properties: {
    file: { type: 'string', format: 'binary', description: 'The file.' },
    purpose: { type: 'string', const: 'batch', description: 'Only `batch` is supported.' },
    expires_after: {
      ...expiresAfterSchema,
      description: 'When the file is deleted, as the fields `expires_after[anchor]` and `expires_after[seconds]`.',
    },
  },
  additionalProperties: true,
  examples: [{ file: 'requests.jsonl', purpose: 'batch' }],
};

const fileSchema = {
  title: 'File',
  type: 'object',
  required: ['id', 'object', 'bytes', 'created_at', 'filename', 'purpose'],
  properties: {
    id: { type: 'string' },
    object: { type: 'string', const: 'file' },
    bytes: { type: 'integer' },
    created_at: { type: 'integer', description: 'Epoch seconds.' },
    expires_at: { type: 'integer', description: 'Epoch seconds at which it is deleted.' },
    filename: { type: 'string' },
    purpose: { type: 'string', enum: ['batch', 'batch_output'] },
    status: { type: 'string', const: 'processed' },
  },
};

const deletedSchema = {
  title: 'DeletedFile',
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { type: 'string', const: 'file' },
    deleted: { type: 'boolean' },
  },
};

interface ListQuery extends PageQuery {
  readonly order?: 'asc' | 'desc';
  readonly purpose?: string;
}

const LIST = {
  type: 'object',
  additionalProperties: true,
  properties: {
    ...pageProperties(LIST_MAX),
    order: { type: 'string', enum: ['asc', 'desc'], default: 'desc', description: '`desc`: the newest first.' },
    purpose: { type: 'string', maxLength: 64, description: 'Only files with this purpose.' },
  },
};
