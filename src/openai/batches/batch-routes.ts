import { hash, randomBytes } from 'node:crypto';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { dialectOf } from '#http';
import { formatUsd } from '#billing/amounts';
import type { Config } from '#config';
import { type Caller, namesInHeaders } from '#accounts';
import { idempotencyError, lowestCap, MAX_COST_HEADER, MAX_COST_META, parseIdempotencyKey, type Pipeline } from '#call';
import { requireAdmission } from '#auth';
import { ownerOf } from '#tasks';
import type { Batch, Batches, StoredFiles } from '#batch-jobs';
import type { BatchCallbacks } from './batch-callbacks.ts';
import { batchBody, type BatchBody, batchSchema, ENDPOINTS } from './batch-schema.ts';
import { described, idParams, keepMsOf } from './shared-schema.ts';
import { noFile } from './file-routes.ts';
import { listAnswer, listSchema, pageOf, pageProperties, type PageQuery } from './list-page.ts';

interface BatchRoutesDeps {
  readonly pipeline: Pick<Pipeline, 'admit' | 'admitPoll'>;
  readonly files: Pick<StoredFiles, 'admit' | 'find'>;
  readonly batches: Batches;
  readonly callbacks: BatchCallbacks;
  readonly config: Pick<Config, 'batches'>;
}

interface OfBatch {
  Params: { batch_id: string };
}

/** The only `completion_window`. */
const WINDOW_MS = 24 * 3_600_000;
const LIST_MAX = 100;
const MS = 1_000;
const ID_CHARS = 32;
const SHOWN_MAX = 128;

const params = idParams('batch');

/** `/batches`, as in OpenAI's API. Register it under `/api/v1`. */
export function batchRoutes({ pipeline, files, batches, callbacks, config }: BatchRoutesDeps): FastifyPluginAsync {
  const { keepMs } = config.batches;

  const creation: FastifyPluginAsync = async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit);
    app.post<{ Body: BatchBody }>(
      '/batches',
      {
        config: { ofCalls: true },
        schema: {
          ...described(
            'Create a batch',
            'createBatch',
            'Calls each line of an uploaded file as a request, within 24 hours. All lines are checked first, and what they may cost is locked. Each line is charged as its own call.',
          ),
          body: batchBody,
          response: { 200: batchSchema },
        },
      },
      async (request) => {
        const { body, headers } = request;
        const { caller } = admissionOf(request);
        const owner = ownerOf(caller);
        const tags = namesInHeaders(headers, caller)?.tags ?? null;
        const { endpoint, input_file_id: inputFile, metadata = null, callback_url: callback = null } = body;
        const { 'idempotency-key': key, [MAX_COST_HEADER]: cost, 'x-tollgate-tags': tagText } = headers;
        const dialect = dialectOf(request);
        const values = {
          ...owner,
          id: idOf(caller, key),
          // Without tags it is the digest of earlier versions.
          request:
            key === undefined
              ? null
              : hash(
                  'sha256',
                  JSON.stringify([dialect, body, cost ?? null, ...(tagText === undefined ? [] : [tagText])]),
                ),
          endpoint,
          inputFile,
        };
        const shownBatch = (batch: Batch, secret: string) =>
          toBatchObject(batch, callback === null ? {} : { callback_secret: secret });
        const before = key === undefined ? null : await batches.find(values.id, owner);
        if (before !== null) {
          refuseOther(before, values);
          return shownBatch(before, await callbacks.keyOfMade(values));
        }
        if (!ENDPOINTS.includes(endpoint))
          throw new GatewayError('invalid_request', `endpoint must be one of ${ENDPOINTS.join(', ')}`, {
            param: 'endpoint',
          });
        const file = await files.find(inputFile, owner);
        if (file === null) throw noFile(inputFile, 'input_file_id');
        if (file.purpose !== 'batch')
          throw new GatewayError('invalid_request', 'The purpose of the file must be "batch"', {
            param: 'input_file_id',
          });
        const cap = lowestCap([
          ['max_cost', body.max_cost],
          [`metadata["${MAX_COST_META}"]`, metadata?.[MAX_COST_META]],
          [MAX_COST_HEADER, cost],
        ]);
        const { output_expires_after: after } = body;
        const keptMs = keepMsOf('output_expires_after', after?.anchor, after?.seconds, keepMs);
        // Its results are files too. Otherwise one input would make any number of them.
        await files.admit(owner);
        // Before the batch, which may end at once.
        if (callback !== null) await callbacks.note(values, callback);
        try {
          const created = await batches.create({
            ...values,
            apiKey: caller.key?.hash ?? null,
            dialect,
            maxCost: cap?.amount ?? null,
            keepMs: keptMs,
            metadata,
            tags,
            windowMs: WINDOW_MS,
          });
          refuseOther(created, values);
          return shownBatch(created, callbacks.keyOf(owner));
        } catch (error) {
          // Another request with the same key may have made the batch.
          const other = callback === null ? null : await batches.find(values.id, owner);
          if (callback !== null && other?.request !== values.request) await callbacks.forget(values);
          throw error;
        }
      },
    );
  };

  return async (app) => {
    await app.register(creation);
    const admissionOf = requireAdmission(app, pipeline.admitPoll);
    const find = async (request: FastifyRequest<OfBatch>): Promise<Batch> => {
      const id = request.params.batch_id;
      const batch = await batches.find(id, ownerOf(admissionOf(request).caller));
      if (batch === null)
        throw new GatewayError('not_found', `No batch found with id '${id.slice(0, SHOWN_MAX)}'.`, {
          param: 'batch_id',
        });
      return batch;
    };
    app.get<{ Querystring: PageQuery }>(
      '/batches',
      {
        schema: {
          ...described('List batches', 'listBatches', 'The batches of the account, the newest first.'),
          querystring: { type: 'object', additionalProperties: true, properties: pageProperties(LIST_MAX) },
          response: { 200: listSchema(batchSchema) },
        },
      },
      async (request) => {
        const owner = ownerOf(admissionOf(request).caller);
        return listAnswer(await batches.list(owner, pageOf(request.query)), (batch) => toBatchObject(batch));
      },
    );
    app.get<OfBatch>(
      '/batches/:batch_id',
      {
        schema: {
          ...described(
            'Show a batch',
            'showBatch',
            'The state of a batch. Its files of results are there when it has ended.',
          ),
          params,
          response: { 200: batchSchema },
        },
      },
      async (request) => toBatchObject(await find(request)),
    );
    app.post<OfBatch>(
      '/batches/:batch_id/cancel',
      {
        config: { ofCalls: true },
        schema: {
          ...described(
            'Cancel a batch',
            'cancelBatch',
            'Ends a batch: no other line begins, and those that run go on to their end. What has ended is charged, and is in the files of results.',
          ),
          params,
          response: { 200: batchSchema },
        },
      },
      async (request) => {
        const batch = await find(request);
        const isCancelled = await batches.cancel(batch);
        const after = await find(request);
        // Another request may have cancelled it since it was found, at any gateway. It may even have ended by now.
        if (!isCancelled && after.status !== 'cancelling' && (after.status !== 'cancelled' || batch.endedAt !== null))
          throw new GatewayError('invalid_request', `Cannot cancel a batch with status '${after.status}'.`, {
            param: 'batch_id',
          });
        return toBatchObject(after);
      },
    );
  };
}

/** The id of a new batch. A repeat with the same idempotency key has the same one. */
function idOf(caller: Caller, key: string | readonly string[] | undefined): string {
  if (key === undefined) return `batch_${randomBytes(ID_CHARS / 2).toString('hex')}`;
  const { account, within } = ownerOf(caller);
  return `batch_${hash('sha256', JSON.stringify([account, within, parseIdempotencyKey(key)])).slice(0, ID_CHARS)}`;
}

/** Refuses another request with the idempotency key of a batch. */
function refuseOther(
  batch: Batch,
  { request, inputFile, endpoint }: Pick<Batch, 'request' | 'inputFile' | 'endpoint'>,
): void {
  // Batches of earlier versions have no digest.
  const isSame =
    batch.request === null ? batch.inputFile === inputFile && batch.endpoint === endpoint : batch.request === request;
  if (!isSame) throw idempotencyError('conflict');
}

const secondsOf = (at: number | null): number | null => (at === null ? null : Math.floor(at / MS));

function toBatchObject(batch: Batch, more: object = {}): object {
  const { status, endedAt, completed, failed, usage, errors } = batch;
  const endedAs = (end: Batch['status']) => (status === end ? secondsOf(endedAt) : null);
  const hasEnded = endedAt !== null;
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.model,
    errors: errors === null ? null : { object: 'list', data: errors },
    input_file_id: batch.inputFile,
    completion_window: '24h',
    status,
    output_file_id: hasEnded && completed > 0 ? batch.outputFile : null,
    error_file_id: hasEnded && failed > 0 ? batch.errorFile : null,
    created_at: secondsOf(batch.createdAt),
    in_progress_at: secondsOf(batch.inProgressAt),
    expires_at: secondsOf(batch.expiresAt),
    finalizing_at: secondsOf(batch.finalizingAt),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: secondsOf(batch.cancellingAt),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total: batch.total, completed, failed },
    usage:
      usage === null
        ? null
        : {
            input_tokens: usage.prompt,
            input_tokens_details: { cached_tokens: usage.cached },
            output_tokens: usage.completion,
            output_tokens_details: { reasoning_tokens: usage.reasoning },
            total_tokens: usage.prompt + usage.completion,
          },
    metadata: batch.metadata,
    tollgate: {
      generation_id: batch.lockId,
      locked_usd: batch.amount === null ? null : formatUsd(batch.amount),
      max_cost: batch.maxCost === null ? null : formatUsd(batch.maxCost),
      ...more,
    },
  };
}
