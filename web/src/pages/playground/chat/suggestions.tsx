import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { request } from '../../../api/request.ts';
import { KindMark } from '../../../ui/kind.tsx';
import { useSignedIn } from '../account-state.tsx';
import type { Service } from '../catalogue.ts';

const ASK_A_MODEL = ['What can you do?', 'Count to 20', 'What does this call cost?'] as const;
const SHOWN_MAX = 4;

/** Shown in an empty conversation: the service, and messages to begin with. */
export function Suggestions({
  service,
  onChoose,
}: {
  readonly service: Service;
  readonly onChoose: (text: string) => void;
}): ReactNode {
  const signedIn = useSignedIn();
  const examples = useExamples(service);
  return (
    <div className="flex min-h-[38vh] flex-col items-center justify-center gap-3 py-10 text-center">
      <KindMark kind={service.kind} />
      <h2 className="line-clamp-2 text-2xl break-words">{service.displayName}</h2>
      {service.description !== '' && (
        <p className="line-clamp-3 max-w-[56ch] break-words text-soft">{service.description}</p>
      )}
      <ul className="mt-3 flex flex-wrap justify-center gap-2">
        {examples.map((text) => (
          <li key={text}>
            <button
              type="button"
              disabled={!signedIn}
              onClick={() => onChoose(text)}
              className="max-w-[80vw] truncate rounded-full border border-line bg-card px-4 py-2 text-sm hover:border-edge disabled:opacity-60"
            >
              {text}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Card {
  readonly skills?: readonly { readonly examples?: readonly unknown[] }[];
}

/** An agent's card contains example messages. */
function useExamples({ kind, name }: Service): readonly string[] {
  const card = useQuery({
    queryKey: ['playground', 'card', name],
    enabled: kind === 'agent',
    staleTime: Infinity,
    queryFn: async () => (await (await request(`/api/v1/a2a/${name}/.well-known/agent-card.json`)).json()) as Card,
  });
  if (kind !== 'agent') return ASK_A_MODEL;
  const skills = Array.isArray(card.data?.skills) ? card.data.skills : [];
  return skills
    .flatMap(({ examples }) => (Array.isArray(examples) ? (examples as readonly unknown[]) : []))
    .filter((text): text is string => typeof text === 'string' && text.length > 0 && text.length < 200)
    .slice(0, SHOWN_MAX);
}
