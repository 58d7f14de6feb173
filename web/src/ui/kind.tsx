import { Bot, Clapperboard, Image, MessageSquareText, Wrench } from 'lucide-react';
import type { ReactNode } from 'react';

/** The kinds of services, as the API names them. */
export const KINDS = ['model', 'tool', 'agent', 'image', 'video'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_NAMES: Readonly<Record<Kind, { readonly one: string; readonly many: string }>> = {
  model: { one: 'Model', many: 'Models' },
  tool: { one: 'Tool', many: 'Tools' },
  agent: { one: 'Agent', many: 'Agents' },
  image: { one: 'Image', many: 'Images' },
  video: { one: 'Video', many: 'Videos' },
};

const LOOK = {
  model: { Icon: MessageSquareText, tone: 'text-model' },
  tool: { Icon: Wrench, tone: 'text-tool' },
  agent: { Icon: Bot, tone: 'text-agent' },
  image: { Icon: Image, tone: 'text-image' },
  video: { Icon: Clapperboard, tone: 'text-video' },
} as const;

/** The kind of a service: its icon, and its word unless `bare`. */
export function KindMark({ kind, bare = false }: { readonly kind: Kind; readonly bare?: boolean }): ReactNode {
  const { Icon, tone } = LOOK[kind];
  return (
    <span className={`inline-flex items-center gap-1.5 text-sm font-medium whitespace-nowrap ${tone}`}>
      <Icon size={15} aria-hidden />
      {bare ? <span className="sr-only">{KIND_NAMES[kind].one}</span> : KIND_NAMES[kind].one}
    </span>
  );
}
