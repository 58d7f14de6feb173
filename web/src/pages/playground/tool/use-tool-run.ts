import { useState } from 'react';
import { type Answer, beginAnswer } from '../calls/answer.ts';
import { useCall } from '../calls/use-call.ts';
import type { CallBody } from '../calls/run-call.ts';

export type Values = Readonly<Record<string, unknown>>;

/** A run of a tool, for display. */
export interface ShownRun {
  readonly values: Values;
  readonly answer: Answer;
}

/** Runs a tool. `model` is its name in the chat API: `mcp/demo/tools/roll_dice`. */
export function useToolRun(model: string): {
  readonly run: (values: Values) => void;
  readonly stop: () => void;
  readonly shown: ShownRun | null;
} {
  const [shown, setShown] = useState<ShownRun | null>(null);
  const { run, stop } = useCall();
  return {
    run(values) {
      setShown({ values, answer: beginAnswer() });
      void run(bodyOfTool(model, values), (answer) => setShown({ values, answer }));
    },
    stop,
    shown,
  };
}

/** The request that calls a tool. The message contains its arguments as JSON. */
export const bodyOfTool = (model: string, values: Values): CallBody => ({
  model,
  messages: [{ role: 'user', content: JSON.stringify(values) }],
});
