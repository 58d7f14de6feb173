import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Part, type TaskStatus } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor } from '@a2a-js/sdk/server';
import { createGame, type GamePart, type GameStep } from './croupier-game.ts';
import { readRun } from './croupier-run.ts';
import type { CroupierTasks } from './croupier-tasks.ts';
import type { Surroundings } from './tools.ts';

const STATES = {
  completed: TaskState.TASK_STATE_COMPLETED,
  rejected: TaskState.TASK_STATE_REJECTED,
  'input-required': TaskState.TASK_STATE_INPUT_REQUIRED,
} as const;

/** Plays the game for each message and publishes its steps as A2A events. */
export function createCroupierExecutor(around: Surroundings, tasks: CroupierTasks): AgentExecutor {
  const game = createGame(around);
  /** Ids of the running tasks. A canceled task is removed, so that its later steps are not published. */
  const playing = new Set<string>();

  const statusOf = (taskId: string, contextId: string, state: TaskState, words: string | null): TaskStatus => {
    const about = {
      messageId: randomUUID(),
      taskId,
      contextId,
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
    const message = words === null ? undefined : { ...about, role: Role.ROLE_AGENT, parts: [partOf({ text: words })] };
    return { state, message, timestamp: new Date(around.now()).toISOString() };
  };
  const update = (taskId: string, contextId: string, state: TaskState, words: string | null) =>
    AgentEvent.statusUpdate({
      taskId,
      contextId,
      status: statusOf(taskId, contextId, state, words),
      metadata: undefined,
    });

  return {
    async execute({ taskId, contextId, userMessage, task }, bus) {
      playing.add(taskId);
      const state = task ? TaskState.TASK_STATE_WORKING : TaskState.TASK_STATE_SUBMITTED;
      const begun = task ?? { id: taskId, contextId, artifacts: [], metadata: undefined };
      bus.publish(AgentEvent.task({ ...begun, history: [], status: statusOf(taskId, contextId, state, null) }));
      let append = false;
      const tell = (step: GameStep) => {
        if (step.kind === 'working')
          return bus.publish(update(taskId, contextId, TaskState.TASK_STATE_WORKING, step.words));
        if (step.kind === 'over') return bus.publish(update(taskId, contextId, STATES[step.state], step.words));
        const artifact = {
          artifactId: 'roll',
          name: 'roll',
          description: '',
          parts: step.parts.map(partOf),
          metadata: undefined,
          extensions: [],
        };
        bus.publish(
          AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: step.last, metadata: undefined }),
        );
        append = true;
      };
      try {
        const said = userMessage.parts
          .flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []))
          .join('\n');
        for await (const step of game(said, readRun(userMessage.metadata))) {
          if (!playing.has(taskId)) return;
          tell(step);
        }
      } catch {
        if (playing.has(taskId))
          bus.publish(update(taskId, contextId, TaskState.TASK_STATE_FAILED, 'The croupier dropped the dice.'));
      } finally {
        playing.delete(taskId);
      }
    },

    async cancelTask(taskId, bus) {
      playing.delete(taskId);
      bus.publish(update(taskId, tasks.find(taskId)?.contextId ?? '', TaskState.TASK_STATE_CANCELED, null));
      tasks.cleanupByTaskId(taskId);
    },
  };
}

function partOf(part: GamePart): Part {
  const rest = { metadata: undefined, filename: '' };
  return 'text' in part
    ? { ...rest, content: { $case: 'text', value: part.text }, mediaType: '' }
    : { ...rest, content: { $case: 'data', value: part.data }, mediaType: 'application/json' };
}
