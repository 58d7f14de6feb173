import { trueOrFalse, whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

/** `[mcp]`: MCP sessions. */
export const MCP = {
  sessions_max: whole({
    min: 1,
    max: 100_000,
    default: 100,
    meaning: 'Most sessions of one account. One more ends the one that was not used for longest.',
  }),
  sessions_in_memory_max: whole({
    min: 1,
    max: 1_000_000,
    default: 20_000,
    meaning: 'Most sessions that one gateway keeps in memory. Others wait in the database until they are used again.',
  }),
  session_idle_ms: whole({
    min: 10_000,
    max: 24 * HOUR_MS,
    default: 30 * MINUTE_MS,
    meaning: 'How long a session lasts that nobody uses.',
  }),
};

/** `[tasks]`: tasks, the work that outlives its call. */
export const TASKS = {
  ttl_ms: whole({
    min: 1_000,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning:
      'How long after its last message, or the call of a tool that began it, a task may go on. What is locked for it then goes back, and it is free.',
  }),
  retention_ms: whole({
    min: 1_000,
    max: 365 * 24 * HOUR_MS,
    default: 7 * 24 * HOUR_MS,
    meaning: 'How long a task can be asked for after its end.',
  }),
  live_max: whole({
    min: 1,
    max: 1_000_000,
    default: 1_000,
    meaning: 'Most tasks of one account that go on at once. What would begin another is refused until one has ended.',
  }),
  look_ms_max: whole({
    min: 1_000,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'Longest pause between two looks at a task whose provider tells nothing of it.',
  }),
};

/** `[webhooks]`: addresses that clients provide. */
export const WEBHOOKS = {
  allow_private: trueOrFalse({
    optional: { text: '`false`; `true` in development', fallback: false, inDevelopment: true },
    meaning:
      'Whether clients may have tasks told to http:// addresses, to this machine and to its networks, and may name pictures and files there. Else only to https:// on the public internet.',
  }),
};
