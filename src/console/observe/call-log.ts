import type { FastifyInstance, FastifyRequest } from 'fastify';
import { dropOldest } from '#wire';
import type { LockResolution } from '#billing';
import { METERS, type Usage } from '#billing/amounts';
import type { Call } from '#call';
import { fieldsRefusedBy } from '#call/refused-fields';
import type { Offer } from '#catalog';
import { OWN_ACCOUNT } from '#accounts';
import { admissionOf } from '#http';
import type { TaskSink, Task } from '#tasks';
import type { LastRefusals } from './last-refusals.ts';
import type { Logger } from './logger.ts';
import { type CallOutcome, type CallSink, reasonOf, statusOf } from './observer.ts';
import { createOutageLog, type OutageLog } from './outage-log.ts';
import type { SpanOf } from './tracer.ts';

/** Maximum size of a consumer's `metadata` in a log line. */
const METADATA_BYTES_MAX = 4096;
const NAME_LENGTH_MAX = 128;

function usageNumbers(usage: Usage | null | undefined): Record<string, number> | null {
  if (!usage) return null;
  const numbers: Record<string, number> = {};
  for (const meter of METERS) {
    const units = usage[meter];
    if (units !== undefined) numbers[meter] = Number(units);
  }
  return numbers;
}

/**
 * Writes one line for a billed call at `info`, for a free call at `debug`, for a flagged reply at `warn`, and for a
 * failed attempt at `warn`, or at `info` if the provider is not to blame or has failed before. The line names the
 * call's span if there is one. This sink must come before the sink that ends the span.
 */
export function createCallLog(
  logger: Logger,
  spanOf: SpanOf = () => null,
  outages: OutageLog = createOutageLog(logger, () => performance.now()),
): CallSink {
  /** The number of fields that the log has toldCounts of as refused by an offer. */
  const toldCounts = new WeakMap<Offer, number>();
  const tellRefused = (call: Call, offer: Offer): void => {
    const fields = fieldsRefusedBy(offer);
    const before = fields.length === 0 ? 0 : (toldCounts.get(offer) ?? 0);
    if (fields.length === before) return;
    toldCounts.set(offer, fields.length);
    logger.warn({ generation_id: call.id, ...placeOf(offer), fields: fields.slice(before), ...spanOf(call) }, REFUSED);
  };
  return {
    attemptFailed(call, offer, failure) {
      const facts = {
        request_id: call.requestId,
        generation_id: call.id,
        service: offer.service,
        provider: offer.provider.name,
        ...spanOf(call),
      };
      const line = {
        ...facts,
        upstream_status: failure.status,
        retryable: failure.retryable,
        reason: failure.message,
      };
      if (failure.attributedTo !== 'provider') logger.info(line, 'attempt failed');
      // The gateway asks each service that it cannot reach again and again. No customer waits for such a call.
      else if (isOwn(call)) outages.failed(listsOf(offer), { ...placeOf(offer), reason: failure.message }, UNREACHED);
      // Each call has its line. Of a provider that is away, the first attempt is a warning.
      else outages.failed(`calls ${offer.id}`, line, 'attempt failed', { rest: 'info' });
    },
    flagged(call, offer, flags, usage) {
      logger.warn(
        {
          request_id: call.requestId,
          generation_id: call.id,
          service: offer.service,
          provider: offer.provider.name,
          ...flags,
          usage: usageNumbers(usage),
          ...spanOf(call),
          alert: true,
        },
        'provider flagged',
      );
    },
    finished(call, outcome) {
      if (outcome.offer !== null) tellRefused(call, outcome.offer);
      if (isOwn(call) && outcome.offer !== null && !outcome.error)
        outages.works(listsOf(outcome.offer), placeOf(outcome.offer), 'the service can be reached again');
      const [level, message] = call.free === null ? (['info', 'call'] as const) : (['debug', 'free call'] as const);
      if (logger.isLevelEnabled(level)) logger[level]({ ...describe(call, outcome), ...spanOf(call) }, message);
    },
  };
}

const REFUSED = 'the service refuses fields that the gateway adds: they are left out from now on';
const UNREACHED = 'the service cannot be reached: its lists are read again later';
const isOwn = ({ caller }: Call): boolean => caller.account === OWN_ACCOUNT;
const listsOf = ({ id }: Offer): string => `lists ${id}`;
const placeOf = ({ service, provider }: Offer) => ({ service, provider: provider.name });

function describe(call: Call, outcome: CallOutcome): Record<string, unknown> {
  const { resolution, offer } = outcome;
  const [code, status] = statusOf(outcome);
  const line: Record<string, unknown> = {
    request_id: call.requestId,
    generation_id: call.id,
    ...(call.parent === null ? {} : { parent: call.parent }),
    account: call.caller.account,
    key: call.caller.key?.label ?? null,
    primitive: call.primitive,
    service: offer?.service ?? call.service,
    ...whatOf(call),
    provider: offer?.provider.name ?? null,
    stream: call.stream,
    status,
    error: code,
    ...(call.free === null ? moneyOf(resolution) : {}),
    attempts: outcome.attempts,
    first_byte_ms: outcome.firstByteMs === null ? null : round(outcome.firstByteMs),
    duration_ms: round(outcome.durationMs),
  };
  if (code === 'internal') line['err'] = outcome.error;
  else if (code !== null && code !== outcome.answerError) line['reason'] = reasonOf(outcome);
  if (resolution && resolution.settlement.shortfall > 0n)
    line['shortfall_micro_usd'] = Number(resolution.settlement.shortfall);
  if (outcome.clientGone) line['client_gone'] = true;
  if (call.metadata) line['metadata'] = boundMetadata(call.metadata);
  return line;
}

/** The called part of the service. The consumer may have invented the name. */
function whatOf({ operation, free }: Call): Record<string, string> {
  return {
    ...(operation === null ? {} : { tool: operation.slice(0, NAME_LENGTH_MAX) }),
    ...(free === null ? {} : { method: free }),
  };
}

function moneyOf(resolution: LockResolution | null): Record<string, unknown> {
  return {
    lock: resolution?.state ?? 'none',
    usage: usageNumbers(resolution?.end?.usage),
    cost_micro_usd: resolution ? Number(resolution.settlement.charged) : 0,
    fee_micro_usd: resolution ? Number(resolution.settlement.fee) : 0,
  };
}

const round = (ms: number) => Math.round(ms * 10) / 10;

function boundMetadata(metadata: Readonly<Record<string, unknown>>): unknown {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  return bytes <= METADATA_BYTES_MAX ? metadata : { truncated: true, bytes };
}

/**
 * Writes one line for a settled call of a task at `info`, for a flagged end or a task that was given up at `warn`,
 * and for a task that began or ended at `debug`.
 */
export function createTaskLog(logger: Logger): TaskSink {
  return {
    begun(task) {
      logger.debug(describeTask(task), 'task began');
    },
    ended(task, gaveUp) {
      if (gaveUp) logger.warn(describeTask(task), 'task given up');
      else logger.debug(describeTask(task), 'task ended');
    },
    concluded({ task, call, providerName, outcome, usage, settlement, flags, claims, durationMs, lock }) {
      const facts = { request_id: requestIdOf(lock.lockDetail), generation_id: call.callId };
      if (flags.length > 0)
        logger.warn(
          {
            ...facts,
            service: task.service,
            provider: providerName,
            flags,
            claims,
            usage: usageNumbers(usage),
            alert: true,
          },
          'provider flagged',
        );
      if (!logger.isLevelEnabled('info')) return;
      const line: Record<string, unknown> = {
        ...facts,
        account: task.account,
        primitive: task.primitive,
        service: task.service,
        provider: providerName,
        task: task.taskId,
        state: task.state,
        outcome,
        lock: 'settled',
        usage: usageNumbers(usage),
        cost_micro_usd: Number(settlement.charged),
        fee_micro_usd: Number(settlement.fee),
        duration_ms: durationMs,
      };
      if (settlement.shortfall > 0n) line['shortfall_micro_usd'] = Number(settlement.shortfall);
      logger.info(line, 'call concluded');
    },
  };
}

function describeTask({ account, primitive, service, taskId, state }: Task): Record<string, unknown> {
  return { account, primitive, service, task: taskId, state };
}

function requestIdOf(lockDetail: string): unknown {
  return (JSON.parse(lockDetail) as { readonly requestId?: unknown }).requestId ?? null;
}

export interface RefusalLog extends Pick<LastRefusals, 'note'> {
  /** Receives calls, because they have their own log line. */
  readonly sink: CallSink;
  /** Writes a line for each other request that ends with a status of 400 or above. */
  watch(server: FastifyInstance): void;
}

/** Maximum number of calls in memory until their answer has ended. The line of a call is written before that. */
const REMEMBERED_MAX = 1_000;

/**
 * Writes one line for each request that was refused before it became a call, for example because of a mistyped key,
 * model or address, and notes it in `last`. `level`: `info` in development.
 */
export function createRefusalLog(
  logger: Logger,
  level: 'info' | 'debug',
  last: Pick<LastRefusals, 'note'>,
): RefusalLog {
  const logged = new Set<string>();
  const note: LastRefusals['note'] = (refusal) => {
    if (!logged.has(refusal.requestId)) last.note(refusal);
  };
  return {
    note,
    sink: {
      finished({ requestId, free }, { error, answerError, end }) {
        if (free !== null || !(error || answerError !== null || end?.cut)) return;
        logged.add(requestId);
        dropOldest(logged, REMEMBERED_MAX);
      },
    },
    watch(server) {
      server.addHook('onError', (request, _reply, error, done) => {
        reasons.set(request.raw, error.message);
        const target = `${request.method} ${request.routeOptions.url ?? pathOf(request)}`;
        note({ error, caller: admissionOf(request)?.caller ?? null, target, requestId: request.id });
        done();
      });
      server.addHook('onResponse', (request, reply, done) => {
        const status = reply.raw.statusCode;
        const isCall = logged.delete(request.id);
        // The level may change while the gateway runs.
        if (status >= 400 && !isCall && logger.isLevelEnabled(level)) {
          const path = pathOf(request);
          const reason = reasons.get(request.raw);
          logger[level](
            {
              request_id: request.id,
              method: request.method,
              path,
              status,
              ...(reason === undefined ? {} : { reason }),
            },
            'refused',
          );
        }
        done();
      });
    },
  };
}

const PATH_CHARS_MAX = 200;
const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0]!.slice(0, PATH_CHARS_MAX);
/** Error messages of requests that are being answered. */
const reasons = new WeakMap<object, string>();
