import type { ReactNode } from 'react';
import { useAgentCard } from '../../api/catalogue.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { Fold } from '../../ui/fold.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { Markdown } from '../../ui/markdown.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const texts = (value: unknown): readonly string[] => list(value).filter((each) => typeof each === 'string');
const object = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** The skills in an agent's card. Strangers write cards, so any member may be missing or have another type. */
export function AgentCard({ agent }: { readonly agent: string }): ReactNode {
  const query = useAgentCard(agent);
  return (
    <Card title="What the agent can do">
      <QueryView query={query} loading={<Skeleton className="h-24 w-full" />}>
        {(card) => (
          <div className="grid gap-5">
            <Markdown text={text(card['description'])} />
            {list(card['skills']).map((each, index) => (
              <Skill key={index} skill={object(each)} />
            ))}
            <Abilities card={card} />
            <Fold name="Agent card (JSON)">
              <div className="overflow-x-auto rounded-lg border border-line bg-sunk p-3">
                <JsonView value={card} />
              </div>
            </Fold>
          </div>
        )}
      </QueryView>
    </Card>
  );
}

function Skill({ skill }: { readonly skill: Readonly<Record<string, unknown>> }): ReactNode {
  const examples = texts(skill['examples']);
  return (
    <div>
      <h3 className="text-base break-words">{text(skill['name']) || text(skill['id'])}</h3>
      <div className="text-soft">
        <Markdown text={text(skill['description'])} />
      </div>
      {examples.length > 0 && (
        <ul className="mt-2 flex flex-wrap gap-2" aria-label="Examples">
          {examples.map((example, index) => (
            <li key={index} className="max-w-full rounded-md bg-sunk px-2.5 py-1 text-sm break-words">
              “{example}”
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Abilities({ card }: { readonly card: Readonly<Record<string, unknown>> }): ReactNode {
  const abilities = object(card['capabilities']);
  const words = [
    ...(abilities['streaming'] === true ? ['Streams'] : []),
    ...(abilities['pushNotifications'] === true ? ['Push notifications'] : []),
    ...texts(card['defaultInputModes']).map((mode) => `Takes ${mode}`),
    ...texts(card['defaultOutputModes']).map((mode) => `Gives ${mode}`),
  ];
  return (
    <div className="flex flex-wrap gap-1.5">
      {words.map((word) => (
        <Badge key={word}>{word}</Badge>
      ))}
    </div>
  );
}
