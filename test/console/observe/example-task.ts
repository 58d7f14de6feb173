import type { Task } from '#tasks';
import type { ConcludedCall } from '../../../src/gateway/tasks/task.ts';

export function exampleTask(changes: Partial<Task> = {}): Task {
  return {
    primitive: 'agent',
    service: 'demo/planner',
    taskId: 'task-1',
    account: 'tollgate:local:dev',
    within: null,
    offerId: 'agent/key-of-Demo:demo/planner',
    provider: 'key-of-Demo',
    contextId: null,
    state: 'completed',
    live: false,
    output: true,
    notes: '{}',
    snapshot: null,
    createdAt: 1_000,
    askedAt: 1_000,
    sentBytes: 100,
    updatedAt: 62_000,
    expiresAt: 90_000,
    ...changes,
  };
}

/** A call that is settled with its task for 57 micro-USD, of which 2 are the operator's. */
export function concludedCall(changes: Partial<ConcludedCall> = {}): ConcludedCall {
  const settlement = { charged: 57n, fee: 2n, drawn: 0n, shortfall: 0n };
  return {
    task: exampleTask(),
    call: { callId: 'gen-1', price: 'price-1' },
    providerName: 'Demo',
    outcome: 'complete',
    usage: { call: 1n },
    settlement,
    flags: [],
    durationMs: 61_000,
    lock: {
      ...settlement,
      id: 'gen-1',
      account: 'tollgate:local:dev',
      amount: 100n,
      parent: null,
      depth: 0,
      lendable: 0n,
      lent: 0n,
      isKept: true,
      prices: ['price-1'],
      budgets: [],
      state: 'held',
      feeBps: null,
      price: null,
      provider: null,
      createdAt: 900,
      expiresAt: 90_000,
      resolvedAt: null,
      lockDetail: '{"primitive":"agent","requestId":"req-1"}',
      usage: null,
      detail: null,
    },
    ...changes,
  };
}
