import { isObject } from '#wire';

type Json = Readonly<Record<string, unknown>>;

/**
 * Items of an answer that tell what ran in a container at OpenAI. Clients send them back with the conversation. They
 * name the container, which would be used again, and which whoever learns the name could use: all consumers share the
 * account. So the model is told in words what ran.
 */
const RUNS: ReadonlySet<unknown> = new Set(['code_interpreter_call', 'shell_call', 'shell_call_output']);

/** A shell that the client runs has no container. */
export const isContainerRun = (item: unknown): item is Json =>
  isObject(item) && RUNS.has(item['type']) && (typeof item['container_id'] === 'string' || isInContainer(item));

const isInContainer = ({ environment }: Json): boolean =>
  isObject(environment) && environment['type'] === 'container_reference';

/** The conversation with such items as text of the model. The same array where it has none. */
export function withoutContainers<Item>(input: readonly Item[]): readonly (Item | Json)[] {
  if (!input.some(isContainerRun)) return input;
  const runs = new Set(input.flatMap((item) => (isContainerRun(item) ? [item['call_id']] : [])));
  const belongs = (item: unknown): item is Json =>
    isContainerRun(item) || (isObject(item) && item['type'] === 'shell_call_output' && runs.has(item['call_id']));
  return input.map((item) => (belongs(item) ? { role: 'assistant', content: wordsOfRun(item) } : item));
}

/** Says what ran and what came of it. Images are left out. */
function wordsOfRun({ type, code, action, output, outputs }: Json): string {
  const said = Array.isArray(outputs) ? outputs.filter((one) => isObject(one) && one['type'] === 'logs') : outputs;
  return `[${String(type)}: ${JSON.stringify({ code, action, output, outputs: said })}]`;
}
