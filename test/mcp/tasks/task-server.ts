import { randomUUID } from 'node:crypto';
import { startRawMcp, type Asked, type RawAnswer, type RawMcp } from '../../support/raw-mcp.ts';

export type TaskFields = Readonly<Record<string, unknown>>;

/** A modern server whose tools all begin tasks, which a test ends. */
export interface TaskServer extends RawMcp {
  /** Answers in the place of the server where it gives anything. */
  instead: (asked: Asked) => RawAnswer | undefined;
  /** Sets members of a task, and adds one that there is not. null removes it. */
  says(taskId: string, fields: TaskFields | null): void;
  /** Ids of all tasks, oldest first. */
  readonly ids: readonly string[];
  /** What was asked about tasks of this id, by method. */
  askedOf(taskId: string, method?: string): number;
}

export const DONE = { status: 'completed', result: { content: [{ type: 'text', text: 'done' }] } } as const;

/** Arguments of a call become members of its task: `{"taskId": "a", "ttlMs": 1}`. */
export async function startTaskServer(): Promise<TaskServer> {
  const tasks = new Map<string, TaskFields>();
  const refused = (idText: string): RawAnswer => {
    const body = `{"jsonrpc":"2.0","id":${idText},"error":{"code":-32602,"message":"no such task"}}`;
    return (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  };
  const answer = (asked: Asked): RawAnswer => {
    const instead = server.instead(asked);
    if (instead !== undefined) return instead;
    const { method, params, idText } = asked;
    if (method === 'tools/call') {
      const at = '2026-11-21T00:00:00Z';
      const task = {
        taskId: randomUUID(),
        status: 'working',
        createdAt: at,
        lastUpdatedAt: at,
        ttlMs: 3_600_000,
        ...(params['arguments'] as TaskFields),
      };
      tasks.set(task.taskId, task);
      return JSON.stringify({ resultType: 'task', ...task });
    }
    const id = String(params['taskId']);
    if (!tasks.has(id)) return refused(idText);
    if (method === 'tasks/cancel' && tasks.get(id)!['status'] === 'working') says(id, { status: 'cancelled' });
    return JSON.stringify(
      method === 'tasks/get' ? { resultType: 'complete', ...tasks.get(id) } : { resultType: 'complete' },
    );
  };
  const says = (taskId: string, fields: TaskFields | null) => {
    if (fields === null) tasks.delete(taskId);
    else tasks.set(taskId, { taskId, ...tasks.get(taskId), ...fields });
  };
  const raw = await startRawMcp(answer, ['{"name":"job","inputSchema":{"type":"object"}}']);
  const server: TaskServer = {
    ...raw,
    instead: () => undefined,
    says,
    get ids() {
      return [...tasks.keys()];
    },
    askedOf: (taskId, method) =>
      raw.asked.filter(
        ({ method: one, params }) => params['taskId'] === taskId && (method === undefined || one === method),
      ).length,
  };
  return server;
}
