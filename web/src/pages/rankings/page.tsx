import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function RankingsPage(): ReactNode {
  return <Heading title="Rankings" lead="What is used most." />;
}
