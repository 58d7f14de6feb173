import { useCallback, useEffect, useState } from 'react';
import { useSession } from '../../../api/session.ts';
import { newId } from '../../../app/new-id.ts';
import { beginAnswer } from '../calls/answer.ts';
import { useCall } from '../calls/use-call.ts';
import type { Service } from '../catalogue.ts';
import { keepChat, readChat } from './kept-chat.ts';
import type { Settings } from './settings.ts';
import { bodyOf, type Said, type Turn } from './turn.ts';

interface Chat {
  readonly turns: readonly Turn[];
  readonly settings: Settings;
  readonly busy: boolean;
  readonly change: (settings: Settings) => void;
  readonly say: (said: Said) => void;
  /** Sends the last message again and replaces its answer. */
  readonly again: () => void;
  readonly stop: () => void;
  readonly clear: () => void;
  /** Stores the cost of a turn whose answer didn't state it. */
  readonly setCost: (id: string, usd: number) => void;
}

/** A conversation with a model or an agent. This tab stores the last one. */
export function useChat(service: Service): Chat {
  const { session } = useSession();
  const account = session?.account ?? '';
  const name = `${service.kind} ${service.name}`;
  const [{ turns, settings }, setChat] = useState(() => readChat(account, name));
  const { run, stop } = useCall();
  const busy = turns.at(-1)?.answer.running ?? false;

  useEffect(() => {
    if (!busy && account !== '') keepChat({ account, service: name, turns, settings });
  }, [account, name, turns, settings, busy]);

  const begin = useCallback(
    (before: readonly Turn[], said: Said) => {
      const body = bodyOf(service, settings, before, said);
      const turn: Turn = { id: newId(), ...said, body, answer: beginAnswer() };
      setChat((chat) => ({ ...chat, turns: [...before, turn] }));
      void run(body, (answer) =>
        setChat((chat) => ({
          ...chat,
          turns: chat.turns.map((each) => (each.id === turn.id ? { ...each, answer } : each)),
        })),
      );
    },
    [service, settings, run],
  );

  const setCost = useCallback(
    (id: string, cost: number) =>
      setChat((chat) => ({
        ...chat,
        turns: chat.turns.map((turn) => (turn.id === id ? { ...turn, answer: { ...turn.answer, cost } } : turn)),
      })),
    [],
  );

  return {
    turns,
    settings,
    busy,
    change: (next) => setChat((chat) => ({ ...chat, settings: next })),
    say: (said) => begin(turns, said),
    again() {
      const last = turns.at(-1);
      if (last) begin(turns.slice(0, -1), { text: last.text, images: last.images });
    },
    stop,
    setCost,
    clear() {
      stop();
      setChat((chat) => ({ ...chat, turns: [] }));
    },
  };
}
