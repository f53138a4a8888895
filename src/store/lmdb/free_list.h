// The freelist: which pages of the file may be overwritten.
//
// Its rows are (number of the transaction that freed the pages, list of pages). A list is an array of 64-bit numbers:
// the count, then that many page numbers, falling. A row may have room for more than the count says; what is in there
// means nothing. A list may be larger than memory allows to hold at once, so it is read piece by piece.
#pragma once

#include "store/lmdb/page_file.h"
#include "store/lmdb/page_format.h"
#include "store/lmdb/tree_walk.h"

namespace perdure::lmdb {

/// Walks the freelist of `meta`: its own pages become used and the pages that it lists free in `owners`. Afterwards
/// the pages that lie beyond the end of the file are accounted for if owners.free().beyond_end() equals
/// file.missing_pages(). Returns what was counted of the tree itself.
DbRecord walk_free_list(const PageFile& file, const Meta& meta, PageOwners& owners, Findings& findings);

}  // namespace perdure::lmdb
