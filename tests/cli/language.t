# Titles, impact and remedy in Chinese; identifiers stay.
NAME: lint in Chinese as text
RUN: printf 'export NCCL_P2P_DISABLE=1\nexport NCCL_AGLO=Ring\n' > "$TMP/e.sh"; topotune lint --lang zh "$TMP/e.sh"
STATUS: 1
EXPECT: 处理：
EXPECT: 已检查
NOT: remedy:
NOT: costs:

NAME: JSON keeps its keys
RUN: printf 'export NCCL_AGLO=Ring\n' > "$TMP/e.sh"; topotune lint --json --lang zh "$TMP/e.sh"
STATUS: 1
EXPECT: "rule": "NCCL01"
EXPECT: "title": "NCCL 不认识 NCCL_AGLO"
EXPECT: "remedy": "是否想写 NCCL_ALGO?"

NAME: Markdown of check
RUN: printf "\t<graphs version=\"1\"></graphs>\n" > "$TMP/t.xml"; printf "NCCL_ALGO=Coll\n" > "$TMP/a.env"; topotune --lang zh check --markdown "$TMP/a.env"
STATUS: 2
EXPECT: | 严重程度 | 规则 |
EXPECT: NCCL04
EXPECT: - 处理: 

NAME: the list
RUN: topotune check --list --lang zh
EXPECT: TOPO01   error topology-file NCCL 无法解析此拓扑文件

NAME: another language is wrong usage
RUN: topotune check --list --lang fr
STATUS: 64
STDERR: fr

NAME: a rule's page
RUN: topotune --lang zh explain ACS01
EXPECT: 影响
EXPECT: 处理
NOT: why it hurts
