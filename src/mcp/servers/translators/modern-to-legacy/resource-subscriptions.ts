import type { JsonObject, ResponseMessage } from '#wire';

/** The resources that a session subscribes to at its server. Each is subscribed once, even for several clients. */
export interface ResourceSubscriptions {
  /** Counts one more listener. Resolves to whether the server reports changes of the resource. */
  subscribe(uri: string): Promise<boolean>;
  unsubscribe(uri: string): void;
}

/** `ask` sends a request to the server. */
export function createResourceSubscriptions(
  ask: (method: string, params: JsonObject) => Promise<ResponseMessage | null>,
): ResourceSubscriptions {
  const byUri = new Map<string, { count: number; readonly done: Promise<boolean> }>();
  return {
    subscribe(uri) {
      const known = byUri.get(uri);
      if (known) {
        known.count++;
        return known.done;
      }
      const done = ask('resources/subscribe', { uri }).then(
        (answer) => answer?.result !== undefined,
        () => false,
      );
      byUri.set(uri, { count: 1, done });
      return done;
    },
    unsubscribe(uri) {
      const known = byUri.get(uri);
      if (!known || --known.count > 0) return;
      byUri.delete(uri);
      ask('resources/unsubscribe', { uri }).catch(() => {});
    },
  };
}
