#include "emit/labels.h"

namespace topotune::emit {

const Labels& labels_of(model::Language language) {
  static constexpr Labels kEnglish = {"; expected {}",
                                      "    costs:  {}\n",
                                      "    remedy: {}\n",
                                      "    because of: {}\n",
                                      "    and {} more (-v lists them)\n",
                                      "{} remark{}",
                                      "{} warning{}",
                                      "{} error{}",
                                      "nothing found",
                                      "nothing could be checked",
                                      "not checked:\n",
                                      "{} rule{} checked, {} not checked for lack of facts",
                                      " (-v says why); topotune explain RULE tells more",
                                      "expected",
                                      "observed",
                                      "evidence",
                                      "because of",
                                      "impact",
                                      "remedy",
                                      "reference",
                                      "| severity | rule | where | what |\n|---|---|---|---|\n",
                                      "\n{} rules checked",
                                      "; {} could not be:\n\n",
                                      "a failure that no rule explains: topotune log shows it"};
  static constexpr Labels kChinese = {
      "\uff1b\u671f\u671b {}",
      "    \u5f71\u54cd\uff1a{}\n",
      "    \u5904\u7406\uff1a{}\n",
      "    \u539f\u56e0\uff1a{}\n",
      "    \u53e6\u6709 {} \u6761\uff08-v \u5217\u51fa\u5168\u90e8\uff09\n",
      "{} \u6761\u63d0\u793a{}",
      "{} \u6761\u8b66\u544a{}",
      "{} \u4e2a\u9519\u8bef{}",
      "\u672a\u53d1\u73b0\u95ee\u9898",
      "\u65e0\u6cd5\u68c0\u67e5\u4efb\u4f55\u89c4\u5219",
      "\u672a\u68c0\u67e5\uff1a\n",
      "\u5df2\u68c0\u67e5 {} \u6761\u89c4\u5219{}\uff0c{} "
      "\u6761\u56e0\u7f3a\u5c11\u4e8b\u5b9e\u672a\u68c0\u67e5",
      "\uff08-v \u8bf4\u660e\u539f\u56e0\uff09\uff1btopotune explain RULE "
      "\u7ed9\u51fa\u8be6\u7ec6\u8bf4\u660e",
      "\u671f\u671b",
      "\u5b9e\u6d4b",
      "\u8bc1\u636e",
      "\u539f\u56e0",
      "\u5f71\u54cd",
      "\u5904\u7406",
      "\u53c2\u8003",
      "| \u4e25\u91cd\u7a0b\u5ea6 | \u89c4\u5219 | \u4f4d\u7f6e | \u95ee\u9898 |\n|---|---|---|---|\n",
      "\n\u5df2\u68c0\u67e5 {} \u6761\u89c4\u5219",
      "\uff1b{} \u6761\u65e0\u6cd5\u68c0\u67e5\uff1a\n\n",
      "\u6709\u89c4\u5219\u65e0\u6cd5\u89e3\u91ca\u7684\u5931\u8d25\uff1atopotune log \u53ef\u67e5\u770b"};
  return language == model::Language::zh ? kChinese : kEnglish;
}

}  // namespace topotune::emit
