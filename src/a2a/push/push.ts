import type { Offer } from '#gateway';
import type { Task, TaskKey, TaskOwner } from '#tasks';
import type { A2aRequest } from '../http/parse-request.ts';
import type { ReplyWriter } from '../http/reply-writer.ts';
import type { Link } from '../agent/resolve.ts';
import type { PushConfig } from '../wire/push-config.ts';

/** The part of push notifications that the route uses. */
export interface Push {
  /**
   * Answers the operations on configurations of the caller's own tasks. `set` is called when a task got a
   * configuration, before the answer is written. `set` must not reject.
   */
  answer(ask: A2aRequest, reply: ReplyWriter, set: (task: Task) => Promise<void>): Promise<void>;
  /** Checks a configuration in a message. Throws A2aError `InvalidParams` if it cannot be stored. */
  check(ask: A2aRequest, config: PushConfig): void;
  /** Stores the configuration of a message for its task, unless the task has the same already. */
  keep(ask: A2aRequest, service: string, taskId: string, config: PushConfig): Promise<void>;
  /**
   * The webhook for an agent's notifications of a task, or (`taskId` null) of the task that a message begins; null if
   * the gateway does not know its own address.
   */
  ownWebhook(offer: Offer, owner: TaskOwner, taskId: string | null): string | null;
  /** Notifies the webhooks of a task of an event in the version of the link. Returns at once. */
  notify(key: TaskKey, link: Pick<Link, 'version'>, value: unknown): void;
}
