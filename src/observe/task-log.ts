import type { TaskSink, Task } from '#tasks';
import { usageNumbers } from './call-log.ts';
import type { Logger } from './logger.ts';

/**
 * Writes one line for a settled call of a task at `info`, for a flagged end or a task that was given up at `warn`,
 * and for a task that began or ended at `debug`.
 */
export function createTaskLog(logger: Logger): TaskSink {
  return {
    begun(task) {
      logger.debug(describe(task), 'task began');
    },
    ended(task, gaveUp) {
      if (gaveUp) logger.warn(describe(task), 'task given up');
      else logger.debug(describe(task), 'task ended');
    },
    concluded({ task, call, providerName, outcome, usage, settlement, flags, durationMs, lock }) {
      const facts = { request_id: requestIdOf(lock.lockDetail), generation_id: call.callId };
      if (flags.length > 0)
        logger.warn(
          { ...facts, service: task.service, provider: providerName, flags, alert: true },
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

function describe({ account, primitive, service, taskId, state }: Task): Record<string, unknown> {
  return { account, primitive, service, task: taskId, state };
}

/** The request id that the pipeline stored with the lock. */
function requestIdOf(lockDetail: string): unknown {
  return (JSON.parse(lockDetail) as { readonly requestId?: unknown }).requestId ?? null;
}
