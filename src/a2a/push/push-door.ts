import type { Offer } from '#gateway';
import type { Task, TaskKey, TaskOwner } from '#tasks';
import type { Ask } from '../door/ask.ts';
import type { ReplyWriter } from '../door/reply-writer.ts';
import type { Link } from '../agent/link.ts';
import type { PushConfig } from '../wire/push-config.ts';

/** Push notifications as the doors need them. */
export interface Push {
  /**
   * Answers the operations on configurations, of the caller's own tasks; `set` is called once a task has one more,
   * before the answer. Must not reject.
   */
  answer(ask: Ask, reply: ReplyWriter, set: (task: Task) => Promise<void>): Promise<void>;
  /** Throws A2aError `InvalidParams` for a configuration that came with a message and cannot be kept. */
  check(ask: Ask, config: PushConfig): void;
  /** Keeps the configuration that came with a message, for the task that it began. */
  keep(ask: Ask, service: string, taskId: string, config: PushConfig): Promise<void>;
  /**
   * The address for an agent's notifications of a task, or (`taskId` null) of the task that a message begins; null
   * where the gateway does not know its own address.
   */
  ownWebhook(offer: Offer, owner: TaskOwner, taskId: string | null): string | null;
  /** Tells of what was seen of a task, in the version of the link; returns at once. */
  notify(key: TaskKey, link: Pick<Link, 'version'>, value: unknown): void;
}
