import type { ReactNode } from 'react';
import { useSearchState } from '../../app/search.ts';
import { Field } from '../../ui/field.tsx';
import { Heading } from '../../ui/heading.tsx';

const DEFAULTS = { q: '' };

export default function MarketplacePage(): ReactNode {
  const [{ q }, set] = useSearchState(DEFAULTS);
  return (
    <>
      <Heading title="Marketplace" lead="Models, tools, agents, images and videos: one list, one price column." />
      <Field label="Search" type="search" value={q} onChange={(event) => set({ q: event.target.value })} />
    </>
  );
}
