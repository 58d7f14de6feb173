import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Artifact, type Message, type Part, type Task, type TaskStatus } from '@a2a-js/sdk';
import type { EndState } from './agent.ts';

/** The ids that all events of a task have. */
export interface TaskIds {
  readonly taskId: string;
  readonly contextId: string;
}

const STATES: Readonly<Record<EndState, TaskState>> = {
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  canceled: TaskState.TASK_STATE_CANCELED,
  rejected: TaskState.TASK_STATE_REJECTED,
  'input-required': TaskState.TASK_STATE_INPUT_REQUIRED,
  'auth-required': TaskState.TASK_STATE_AUTH_REQUIRED,
};

export const stateOf = (state: EndState): TaskState => STATES[state];

export const textPart = (text: string): Part => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

/** One part of each kind: text, bytes, URL and data. */
export const everyPart = (): Part[] => [
  textPart('a text'),
  {
    content: { $case: 'raw', value: Buffer.from('the bytes') },
    metadata: undefined,
    filename: 'bytes.bin',
    mediaType: 'application/octet-stream',
  },
  {
    content: { $case: 'url', value: 'https://files.example/picture.png' },
    metadata: undefined,
    filename: 'picture.png',
    mediaType: 'image/png',
  },
  {
    content: { $case: 'data', value: { answer: 42, list: [1, 'two', null] } },
    metadata: { shape: 'record' },
    filename: '',
    mediaType: 'application/json',
  },
];

export function agentMessage(
  ids: TaskIds | { readonly contextId: string },
  text: string,
  metadata?: Record<string, unknown>,
): Message {
  return {
    messageId: randomUUID(),
    contextId: ids.contextId,
    taskId: 'taskId' in ids ? ids.taskId : '',
    role: Role.ROLE_AGENT,
    parts: [textPart(text)],
    metadata,
    extensions: [],
    referenceTaskIds: [],
  };
}

export const statusOf = (state: TaskState, message?: Message): TaskStatus => ({
  state,
  message,
  timestamp: new Date().toISOString(),
});

export const newTask = (ids: TaskIds, asked: Message): Task => ({
  id: ids.taskId,
  contextId: ids.contextId,
  status: statusOf(TaskState.TASK_STATE_SUBMITTED),
  artifacts: [],
  history: [asked],
  metadata: undefined,
});

export const artifactOf = (artifactId: string, parts: Part[]): Artifact => ({
  artifactId,
  name: 'answer',
  description: '',
  parts,
  metadata: undefined,
  extensions: [],
});
