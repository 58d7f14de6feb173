import { Code, RotateCcw, SlidersHorizontal } from 'lucide-react';
import { useCallback, useEffect, useRef, useState, type ReactNode } from 'react';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { BarActions } from '../bar-actions.tsx';
import type { Answer } from '../calls/answer.ts';
import type { Service } from '../catalogue.ts';
import { CodeDialog } from '../code/code-dialog.tsx';
import { codeOfChat } from '../code/code-of-chat.ts';
import { AnswerView } from './answer-view.tsx';
import { Composer } from './composer.tsx';
import { SettingsDrawer } from './settings-drawer.tsx';
import { countSettings, isRight } from './settings.ts';
import { Suggestions } from './suggestions.tsx';
import { MostCost } from '../most-cost.tsx';
import { bodyOf, costSoFar, quoteBodyOf, type Said, type Turn } from './turn.ts';
import { useChat } from './use-chat.ts';

/** The page scrolls with a growing answer if the reader is within this distance of the panel's end. */
const FOLLOW_PX = 160;

/** A conversation with a model or an agent. */
export default function ChatPanel({
  service,
  services,
}: {
  readonly service: Service;
  readonly services: readonly Service[];
}): ReactNode {
  const chat = useChat(service);
  const { turns, settings, busy } = chat;
  const [open, setOpen] = useState<'settings' | 'code' | null>(null);
  const { panel, setList, follow } = useFollow();
  const say = (said: Said) => {
    chat.say(said);
    follow();
  };
  const set = countSettings(settings);
  const last = turns.at(-1);
  return (
    <div ref={panel} className="mx-auto flex max-w-[50rem] flex-col">
      <BarActions>
        {turns.length > 0 && (
          <Button tone="quiet" onClick={chat.clear}>
            <RotateCcw size={15} aria-hidden /> <span className="max-sm:sr-only">New</span>
          </Button>
        )}
        <Button onClick={() => setOpen('settings')}>
          <SlidersHorizontal size={15} aria-hidden /> <span className="max-sm:sr-only">Settings</span>
          {set > 0 && <span className="rounded-full bg-accent-wash px-1.5 text-xs text-accent">{set}</span>}
        </Button>
        <Button onClick={() => setOpen('code')}>
          <Code size={15} aria-hidden /> <span className="max-sm:sr-only">Show code</span>
        </Button>
      </BarActions>
      {settings.tools.length > 0 && (
        <p className="mb-4 flex flex-wrap items-center gap-1.5 text-sm text-soft">
          Tools
          {settings.tools.map((name) => (
            <Badge key={name}>{name}</Badge>
          ))}
        </p>
      )}
      {turns.length === 0 ? (
        <Suggestions service={service} onChoose={(text) => say({ text, images: [] })} />
      ) : (
        <ol ref={setList} className="grid gap-7 pb-6">
          {turns.map((turn, index) => (
            <li key={turn.id} className="grid gap-4">
              <SaidView turn={turn} />
              <TurnAnswer
                service={service}
                turn={turn}
                onAgain={index === turns.length - 1 ? chat.again : undefined}
                setCost={chat.setCost}
              />
            </li>
          ))}
        </ol>
      )}
      <div className="sticky bottom-0 bg-linear-to-t from-ground from-75% to-transparent pb-4 pt-5">
        <Composer
          to={service.name}
          busy={busy}
          ready={isRight(settings)}
          pictures={service.model?.seesImages ?? false}
          spent={spentIn(turns)}
          most={(said) => (
            <MostCost
              body={said === null ? null : quoteBodyOf(service, settings, turns, said)}
              cap={settings.maxCost.trim() === '' ? null : Number(settings.maxCost)}
              {...(settings.tools.length > 0 ? { more: 'a round, and the price of its tools' } : {})}
              otherwise="Enter sends it"
            />
          )}
          onSay={say}
          stopWord={service.kind === 'agent' ? 'Cancel' : 'Stop'}
          whatStopDoes={whatStopDoes(service, last?.answer)}
          onStop={chat.stop}
        />
      </div>
      <SettingsDrawer
        service={service}
        services={services}
        settings={settings}
        open={open === 'settings'}
        onChange={chat.change}
        onClose={() => setOpen(null)}
      />
      <CodeDialog
        open={open === 'code'}
        onClose={() => setOpen(null)}
        samples={() => codeOfChat(service, last?.body ?? bodyOf(service, settings, [], { text: 'Hello', images: [] }))}
      />
    </div>
  );
}

/** Says before the button is pressed what it does to the cost. */
function whatStopDoes({ kind, listed }: Service, answer: Answer | undefined): string {
  if (kind === 'agent') return 'Cancel tells the agent: what it has given by then is charged';
  return (answer?.stops ?? listed.stops) === false
    ? 'Stop does not stop this provider: it goes on for a while, and what it makes is charged'
    : 'Stop ends it within a second: what has come by then is charged';
}

/** USD for all answers so far. */
const spentIn = (turns: readonly Turn[]): number => turns.reduce((sum, { answer }) => sum + (answer.cost ?? 0), 0);

function TurnAnswer({
  service,
  turn,
  onAgain,
  setCost,
}: {
  readonly service: Service;
  readonly turn: Turn;
  readonly onAgain: (() => void) | undefined;
  readonly setCost: (id: string, usd: number) => void;
}): ReactNode {
  const { id, answer } = turn;
  const onCost = useCallback((usd: number) => setCost(id, usd), [id, setCost]);
  return (
    <AnswerView
      answer={answer}
      agent={service.kind === 'agent'}
      estimate={answer.running ? costSoFar(service, turn) : null}
      onAgain={onAgain}
      onCost={onCost}
    />
  );
}

function SaidView({ turn }: { readonly turn: Turn }): ReactNode {
  return (
    <div className="ml-auto grid max-w-[85%] justify-items-end gap-2">
      {turn.images.length > 0 && (
        <div className="flex flex-wrap justify-end gap-2">
          {turn.images.map((url, index) => (
            <img key={index} src={url} alt={`Attached, ${index + 1}`} className="max-h-40 rounded-xl" />
          ))}
        </div>
      )}
      {turn.text !== '' && (
        <p className="rounded-2xl rounded-br-md bg-accent-wash px-4 py-2.5 whitespace-pre-wrap break-words">
          {turn.text}
        </p>
      )}
    </div>
  );
}

/** Keeps the end of the growing conversation visible, unless the reader has scrolled away. */
function useFollow() {
  const panel = useRef<HTMLDivElement>(null);
  const [list, setList] = useState<HTMLOListElement | null>(null);
  const follows = useRef(false);
  useEffect(() => {
    const look = () => (follows.current = restBelow(panel.current) < FOLLOW_PX);
    addEventListener('scroll', look, { passive: true });
    return () => removeEventListener('scroll', look);
  }, []);
  useEffect(() => {
    if (list === null) return;
    let height = list.clientHeight;
    const grown = new ResizeObserver(() => {
      if (list.clientHeight > height && follows.current) scrollToEnd(panel.current);
      height = list.clientHeight;
    });
    grown.observe(list);
    return () => grown.disconnect();
  }, [list]);
  return {
    panel,
    setList,
    follow() {
      follows.current = true;
      // Waits until the new message is rendered.
      requestAnimationFrame(() => scrollToEnd(panel.current));
    },
  };
}

/** Pixels of the panel below the window. */
const restBelow = (panel: Element | null): number => (panel?.getBoundingClientRect().bottom ?? 0) - innerHeight;

/** Leaves the footer below the window, so that a short conversation keeps the bar above it. */
const scrollToEnd = (panel: Element | null): void => scrollBy(0, Math.max(0, restBelow(panel)));
