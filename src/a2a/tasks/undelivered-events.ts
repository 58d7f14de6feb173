import { isObject, type JsonObject } from '#wire';
import { eventOf } from '../wire/events.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/**
 * Which of the waiting events a client must still get after the shown task. The task was read while the events came, so
 * it has the output of some of them. Status events are always sent, because a status may be repeated. Of an artifact's
 * parts, those are dropped with which the shown artifact ends. All values are in `version`.
 */
export function undeliveredEvents(
  version: A2aVersion,
  shown: unknown,
  waiting: readonly unknown[],
): readonly boolean[] {
  const events = waiting.map((value) => eventOf(version, value));
  const wanted = events.map((event) => event?.kind === 'status' || event?.kind === 'artifact');
  const updates = events.flatMap((event, index) => {
    const artifact = event?.kind === 'artifact' ? event.value['artifact'] : undefined;
    if (!isObject(artifact)) return [];
    return [{ index, id: artifact['artifactId'], text: textOf(artifact), appends: event!.value['append'] === true }];
  });
  for (const [id, of] of Map.groupBy(updates, (update) => update.id)) {
    const told = toldOf(artifactIn(shown, id), of);
    // An update without parts may be repeated, and may say that it is the last.
    for (const { index, text } of of.slice(0, told)) if (text !== '') wanted[index] = false;
  }
  return wanted;
}

interface Update {
  readonly text: string;
  readonly appends: boolean;
}

/** How many of the updates, from the first on, the shown artifact has already. null: it is not shown. */
function toldOf(shown: string | null, updates: readonly Update[]): number {
  if (shown === null) return 0;
  let told = 0;
  // Updates up to the next one that replaces the artifact make one text.
  for (let from = 0, next; from < updates.length; from = next) {
    next = updates.findIndex(({ appends }, index) => index > from && !appends);
    if (next === -1) next = updates.length;
    const texts = updates.slice(from, next).map(({ text }) => text);
    const found = updates[from]!.appends ? beginningAtEndOf(shown, texts) : beginningThatIs(shown, texts);
    if (found > 0) told = from + found;
  }
  return told;
}

/** The most texts, from the first on, that together are `whole`; 0 if none are. */
function beginningThatIs(whole: string, texts: readonly string[]): number {
  let found = 0;
  let at = 0;
  for (const [index, text] of texts.entries()) {
    if (!whole.startsWith(text, at)) break;
    at += text.length;
    if (at === whole.length) found = index + 1;
  }
  return found;
}

/** The most texts, from the first on, with which together `whole` ends; 0 if none. In linear time. */
function beginningAtEndOf(whole: string, texts: readonly string[]): number {
  const all = texts.join('');
  const end = whole.slice(-all.length);
  // For each beginning of `all`, the length of the longest shorter beginning with which it ends.
  const shorter = new Int32Array(all.length + 1);
  const longer = (length: number, code: number): number => {
    let at = length;
    while (at > 0 && (at === all.length || all.charCodeAt(at) !== code)) at = shorter[at]!;
    return all.charCodeAt(at) === code ? at + 1 : 0;
  };
  for (let at = 1; at < all.length; at++) shorter[at + 1] = longer(shorter[at]!, all.charCodeAt(at));
  let length = 0;
  for (let at = 0; at < end.length; at++) length = longer(length, end.charCodeAt(at));
  const counts = new Map<number, number>();
  let sum = 0;
  for (const [index, text] of texts.entries()) counts.set((sum += text.length), index + 1);
  while (length > 0 && !counts.has(length)) length = shorter[length]!;
  return length === 0 ? 0 : counts.get(length)!;
}

/** The parts of the artifact in a task, as textOf writes them; null if the task does not have it. */
function artifactIn(task: unknown, id: unknown): string | null {
  const artifacts = isObject(task) ? task['artifacts'] : undefined;
  if (!Array.isArray(artifacts)) return null;
  const found: unknown = artifacts.find((one) => isObject(one) && one['artifactId'] === id);
  return isObject(found) ? textOf(found) : null;
}

/** Parts as one text. Adjacent texts are joined, because some agents join them too. */
function textOf({ parts }: JsonObject): string {
  if (!Array.isArray(parts)) return '';
  return parts
    .map((part: unknown) =>
      isObject(part) && typeof part['text'] === 'string' ? part['text'] : `\0${JSON.stringify(part)}\0`,
    )
    .join('');
}
