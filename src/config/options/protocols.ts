import { trueOrFalse, whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

/** `[mcp]`: MCP sessions. */
export const MCP = {
  sessions_max: whole({
    min: 1,
    max: 100_000,
    default: 100,
    meaning:
      'Largest number of sessions of one account. A further one ends the session that was unused for the longest time.',
  }),
  sessions_in_memory_max: whole({
    min: 1,
    max: 1_000_000,
    default: 20_000,
    meaning:
      'Largest number of sessions that one gateway keeps in memory. Others stay in the database until they are used again.',
  }),
  session_idle_ms: whole({
    min: 10_000,
    max: 24 * HOUR_MS,
    default: 30 * MINUTE_MS,
    meaning: 'A session ends after this time without use.',
  }),
};

/** `[tasks]`: tasks, the work that outlives its call. */
export const TASKS = {
  ttl_ms: whole({
    min: 1_000,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning:
      'How long a task may run after its last message, or after the tool call that began it. After that, the gateway ends the task. It is free, unless an agent has given output, which is charged.',
  }),
  retention_ms: whole({
    min: 1_000,
    max: 365 * 24 * HOUR_MS,
    default: 7 * 24 * HOUR_MS,
    meaning: 'How long a task can be read after its end.',
  }),
  live_max: whole({
    min: 1,
    max: 1_000_000,
    default: 1_000,
    meaning: 'Largest number of running tasks of one account. A further task is refused until one has ended.',
  }),
  look_ms_max: whole({
    min: 1_000,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'Longest time between two checks of a task whose provider does not report on it.',
  }),
};

/** `[webhooks]`: addresses that clients provide. */
export const WEBHOOKS = {
  allow_private: trueOrFalse({
    optional: { text: '`false`; `true` in development', fallback: false, inDevelopment: true },
    meaning:
      'Whether webhooks of clients, and the pictures and files that they name, may be at http:// addresses, on this machine and in its networks. Otherwise only https:// addresses on the public internet are accepted.',
  }),
};
